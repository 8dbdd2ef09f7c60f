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

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.sources.base import (
    BATCH_BYTES,
    BATCH_ROWS,
    Quarantined,
    document_batch,
    excerpt,
    kind_of,
)
from roots_pipeline.sources.decompress import Damage, decompressed
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.lines import split_lines

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
        block: list[tuple[int, bytes]] = []
        size = 0
        with open_input(path) as handle:
            for number, line in split_lines(decompressed(handle), self.max_document_bytes):
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
        """A block of lines becomes at most one batch, column by column, after its bad lines."""
        records: list[dict[str, Any]] = []
        lines: list[tuple[int, bytes]] = []
        for number, line in block:
            try:
                record = _parse(line)
            except _Unusable as reason:
                yield Quarantined(path, number, str(reason), excerpt(line))
            else:
                if record is not None:
                    records.append(record)
                    lines.append((number, line))
        columns, bad = self._columns(records, relative_name(path, self.root), [number for number, _ in lines])
        for row in sorted(bad):
            yield Quarantined(path, lines[row][0], bad[row], excerpt(lines[row][1]))
        if bad:
            good = [row for row in range(len(records)) if row not in bad]
            columns = {name: [values[row] for row in good] for name, values in columns.items()}
        if columns["id"]:
            yield document_batch(self.source, {
                name: pa.array(values, DOCUMENT_SCHEMA.field(name).type) for name, values in columns.items()})

    def _columns(
        self, records: list[dict[str, Any]], file: str, numbers: list[int]
    ) -> tuple[dict[str, list[Any]], dict[int, str]]:
        """The columns of all records, and for each bad one the first reason."""
        bad: dict[int, str] = {}
        texts = [record.get(self.text_field) for record in records]
        if set(map(type, texts)) != {str}:
            for row, text in enumerate(texts):
                if type(text) is not str:
                    bad[row] = self._why_no_text(records[row])
        ids = [record.get(self.id_field) for record in records]
        if set(map(type, ids)) != {str} or "" in ids:
            for row, value in enumerate(ids):
                if type(value) is not str or not value:
                    ids[row], reason = _id(value, f"{file}:{numbers[row]}", self.id_field)
                    if reason:
                        bad.setdefault(row, reason)
        columns = {
            "id": ids,
            "text": texts,
            "language": _strings(records, self.language_field, self.language_of(file), bad),
            "url": _strings(records, self.url_field, None, bad),
            "license": _strings(records, self.license_field, self.license, bad),
        }
        if self.metadata_fields:
            fields = self.metadata_fields
            columns["metadata"] = [_metadata(record, fields, row, bad) for row, record in enumerate(records)]
        return columns, bad

    def _why_no_text(self, record: dict[str, Any]) -> str:
        if self.text_field in record:
            return f"`{self.text_field}` is {kind_of(record[self.text_field])}, not a string"
        names = ", ".join(excerpt(name) for name in record)
        return f"no field `{self.text_field}`; fields: {names or 'none'}"[:400]


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


def _id(value: Any, place: str, field: str) -> tuple[str, str | None]:
    """Any other id as a string, or the reason why it cannot be one. A missing or empty id is the place."""
    if value is None or value == "":
        return place, None
    if type(value) is int or (type(value) is float and abs(value) < 2**63):
        return str(value), None
    if type(value) is float:  # the parser reads integers of more than 64 bits as fractions and loses digits
        return place, f"`{field}` is a number too large to be kept exactly; write it as a string"
    return place, f"`{field}` is {kind_of(value)}, neither a string nor a number"


def _strings(
    records: list[dict[str, Any]], field: str | None, otherwise: str | None, bad: dict[int, str]
) -> list[str | None]:
    """A field of all records, or the same value for all if no field is named; notes rows of another type."""
    if field is None:
        return [otherwise] * len(records)
    values = [record.get(field) for record in records]
    if not set(map(type, values)) <= {str, type(None)}:
        for row, value in enumerate(values):
            if value is not None and type(value) is not str:
                bad.setdefault(row, f"`{field}` is {kind_of(value)}, not a string")
    return values


def _metadata(record: dict[str, Any], fields: tuple[str, ...], row: int, bad: dict[int, str]) -> str | None:
    """The fields that a record has, as a JSON object."""
    found = {name: record[name] for name in fields if name in record}
    try:
        return orjson.dumps(found).decode() if found else None
    except orjson.JSONEncodeError as error:  # the writer nests less deep than the parser
        bad.setdefault(row, f"the metadata cannot be kept: {error}")
        return None
