"""Plain text: one document a file, a line, or a paragraph.

In: a file of text, plain, gzip or zstd. Whole files may be in any charset; lines and paragraphs are UTF-8. Out:
batches, and a quarantined record for what is too long or not text. Paragraphs are parted by blank lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, ClassVar, Literal

import orjson
import pyarrow as pa

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import (
    BATCH_BYTES,
    BATCH_ROWS,
    MAX_DOCUMENT_BYTES,
    Origin,
    Part,
    Quarantined,
    excerpt,
)
from roots_pipeline.sources.charset import NO_CHARSET, decode
from roots_pipeline.sources.decompress import Damage, decompressed
from roots_pipeline.sources.files import open_input, relative_name
from roots_pipeline.sources.parts import byte_parts, numbered_lines

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Origin):
    """Reader of plain text. `unit` says what a document is; `language_from` is that of `Fields`."""

    name: ClassVar[str] = "text"
    version: ClassVar[int] = 1

    unit: Literal["file", "line", "paragraph"] = "file"
    language_from: Literal["filename"] | None = None
    max_document_bytes: int = MAX_DOCUMENT_BYTES

    def __post_init__(self) -> None:
        Origin.__post_init__(self)
        self.require_at_most_one(language=self.language, language_from=self.language_from)
        if self.max_document_bytes < 1:
            raise RecipeError(f"`max_document_bytes` is {self.max_document_bytes}; it must be at least 1.",
                              where=f"source '{self.source}'")

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".txt", ".txt.gz", ".txt.zst")

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        yield from self._read(path, None, batch_bytes)

    def parts(self, path: str, size: int, wanted: int) -> list[Part]:
        """See `Splittable.parts`; a file of lines can be cut, one of paragraphs or one document cannot."""
        return byte_parts(path, size, wanted) if self.unit == "line" else []

    def read_part(
        self, path: str, part: Part, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Splittable.read_part`."""
        yield from self._read(path, part, batch_bytes)

    def _read(self, path: str, part: Part | None, batch_bytes: int) -> Iterator[pa.RecordBatch | Quarantined]:
        file = relative_name(path, self.root)
        language = file.rsplit("/", 1)[-1].split(".", 1)[0] if self.language_from == "filename" else self.language
        rows: list[dict[str, str | None]] = []
        size = 0
        with open_input(path) as handle:
            for item in self._texts(path, handle, part):
                if isinstance(item, Quarantined):
                    yield item
                    continue
                number, text, metadata = item
                rows.append({"id": file if number is None else f"{file}:{number}", "text": text, "source": self.source,
                             "language": language, "license": self.license, "metadata": metadata})
                size += len(text)
                if size >= batch_bytes or len(rows) == BATCH_ROWS:
                    yield make_batch(rows)
                    rows, size = [], 0
        if rows:
            yield make_batch(rows)

    def _texts(
        self, path: str, handle: BinaryIO, part: Part | None
    ) -> Iterator[tuple[int | None, str, str | None] | Quarantined]:
        """Number, text and metadata of each document."""
        if self.unit == "file":
            yield self._whole(path, decompressed(handle))
            return
        lines = numbered_lines(handle, part, self.max_document_bytes)
        for number, found in lines if self.unit == "line" else _paragraphs(lines, self.max_document_bytes):
            if isinstance(found, Damage):
                yield Quarantined(path, number, found.reason, excerpt(found.head))
                continue
            found = found.removeprefix(_BOM).removesuffix(b"\r")
            if found and not found.isspace():
                try:
                    yield number, found.decode(), None
                except UnicodeDecodeError:
                    yield Quarantined(path, number, "not valid UTF-8", excerpt(found))

    def _whole(self, path: str, pieces: Iterator[bytes | Damage]) -> tuple[None, str, str | None] | Quarantined:
        parts: list[bytes] = []
        size = 0
        for piece in pieces:
            if isinstance(piece, Damage):
                return Quarantined(path, None, piece.reason, excerpt(b"".join(parts)[:400]))
            parts.append(piece)
            size += len(piece)
            if size > self.max_document_bytes:
                problem = f"the file is larger than {self.max_document_bytes:,} bytes"
                return Quarantined(path, None, problem, excerpt(parts[0]))
        data = b"".join(parts)
        decoded = decode(data)
        if decoded is None:
            return Quarantined(path, None, NO_CHARSET, excerpt(data))
        facts = {"charset": decoded.charset, "replaced": decoded.replaced}
        usual = facts == {"charset": "utf-8", "replaced": 0}
        return None, decoded.text, None if usual else orjson.dumps(facts).decode()


def _paragraphs(lines: Iterator[tuple[int, bytes | Damage]], limit: int) -> Iterator[tuple[int, bytes | Damage]]:
    """Lines up to the next blank one together, under the number of their first; `Damage` for one that is too long."""
    held: list[bytes] = []
    first, size = 1, 0
    for number, line in lines:
        if isinstance(line, Damage) or not line.removeprefix(_BOM) or line.removeprefix(_BOM).isspace():
            yield _paragraph(first, held, size, limit)
            held, size = [], 0
            if isinstance(line, Damage):
                yield number, line
            continue
        if not held:
            first = number
        size += len(line) + 1
        if size <= limit or not held:
            held.append(line)
    yield _paragraph(first, held, size, limit)


def _paragraph(number: int, lines: list[bytes], size: int, limit: int) -> tuple[int, bytes | Damage]:
    if size > limit + 1:
        return number, Damage(f"the paragraph is longer than {limit:,} bytes", lines[0][:1024])
    return number, b"\n".join(line.removesuffix(b"\r") for line in lines)
