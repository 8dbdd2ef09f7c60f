"""JSON lines, plain or compressed: one object a line, with its text in one of the fields.

In: a file of lines. Out: batches, and a quarantined record for every line that is not valid UTF-8 and
strict JSON (RFC 8259), is not an object, or whose text is missing or no string. Blank lines do not count. A
byte order mark and CR LF are accepted. A lone surrogate (`\\ud800`) cannot be written as UTF-8, so its line
is quarantined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import pyarrow as pa

from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Part, Quarantined, excerpt, kind_of
from roots_pipeline.sources.decompress import Damage
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import open_input
from roots_pipeline.sources.parts import byte_parts, numbered_lines
from roots_pipeline.sources.records import Record, documents

_BOM = b"\xef\xbb\xbf"


class _Unusable(Exception):
    """A record that cannot become a document; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jsonl(Fields):
    """Reader of JSON lines."""

    name: ClassVar[str] = "jsonl"
    version: ClassVar[int] = 1

    @property
    def suffixes(self) -> tuple[str, ...]:
        kinds, packings = (".jsonl", ".ndjson", ".json"), ("", ".gz", ".zst")
        return tuple(kind + packing for kind in kinds for packing in packings)

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        yield from self._read(path, None, batch_bytes)

    def parts(self, path: str, size: int, wanted: int) -> list[Part]:
        """See `Splittable.parts`."""
        return byte_parts(path, size, wanted)

    def read_part(
        self, path: str, part: Part, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Splittable.read_part`."""
        yield from self._read(path, part, batch_bytes)

    def _read(self, path: str, part: Part | None, batch_bytes: int) -> Iterator[pa.RecordBatch | Quarantined]:
        block: list[tuple[int, bytes]] = []
        size = 0
        with open_input(path) as handle:
            for number, line in numbered_lines(handle, part, self.max_document_bytes):
                if isinstance(line, Damage):
                    yield Quarantined(path, number, line.reason, excerpt(line.head))
                elif line and not line.isspace():
                    block.append((number, line))
                    size += len(line)
                    if size >= batch_bytes or len(block) == BATCH_ROWS:
                        yield from self._convert(path, block)
                        block, size = [], 0
        yield from self._convert(path, block)

    def _convert(self, path: str, block: list[tuple[int, bytes]]) -> Iterator[pa.RecordBatch | Quarantined]:
        """A block of lines becomes at most one batch, after its bad lines."""
        records: list[Record] = []
        for number, line in block:
            try:
                fields = _parse(line)
            except _Unusable as reason:
                yield Quarantined(path, number, str(reason), excerpt(line))
            else:
                if fields is not None:
                    records.append(Record(number, fields, line))
        yield from documents(self, path, records)


def _parse(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None for a line that holds nothing but a byte order mark."""
    if line.startswith(_BOM):  # on any line, because files that start with one get concatenated
        line = line[len(_BOM) :]
        if not line or line.isspace():
            return None
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if "UTF-8" in error.msg:
            raise _Unusable("not valid UTF-8") from error
        raise _Unusable(f"not valid JSON: {error.msg} at character {error.pos + 1}") from error
    if type(record) is not dict:
        raise _Unusable(f"the line is {kind_of(record)}, not an object")
    return record
