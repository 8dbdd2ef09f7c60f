"""Parts of one large file, so that several workers can read it: ranges of bytes, or row groups of Parquet.

A byte range stands for the lines that begin in it. Its reader looks for the first line end at or behind the byte before
`begin`, and goes on to the first one at or behind the last byte of the range: lines belong to one part each, whatever
their length, and a part in which none begins is empty. Only plain files can be cut so; a compressed stream has to be
read from its beginning. Numbers of records are those of the whole file, so that ids and messages do not depend on how
a file is cut: the lines before a part are counted while the file is hashed (`roots_pipeline.inputs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, Protocol, runtime_checkable

import pyarrow as pa

from roots_pipeline.sources.base import BATCH_BYTES, ByteRange, Part, Quarantined
from roots_pipeline.sources.decompress import Damage, decompressed, is_plain
from roots_pipeline.sources.files import open_input
from roots_pipeline.sources.lines import split_lines

_READ = 1 << 20
_SNIFFED = 16


@runtime_checkable
class Splittable(Protocol):
    """A reader that can read parts of a file."""

    def parts(self, path: str, size: int, wanted: int) -> list[Part]:
        """About `wanted` parts, which together are the file; none if this file cannot be cut."""
        ...

    def read_part(
        self, path: str, part: Part, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[pa.RecordBatch | Quarantined]:
        """What `read` yields of this part of the file."""
        ...


def byte_parts(path: str, size: int, wanted: int) -> list[Part]:
    """A plain file in `wanted` ranges of equal size; none if its first bytes say that it is compressed or no text."""
    with open_input(path) as handle:
        if not is_plain(handle.read(_SNIFFED)):
            return []
    borders = sorted({size * number // wanted for number in range(wanted + 1)})
    return [ByteRange(begin, end) for begin, end in pairwise(borders)]


def numbered_lines(handle: BinaryIO, part: Part | None, limit: int) -> Iterator[tuple[int, bytes | Damage]]:
    """The lines of a file or of a part of it, as `split_lines` gives them, with their numbers in the whole file."""
    if part is None:
        yield from split_lines(decompressed(handle), limit)
        return
    assert isinstance(part, ByteRange)
    before = part.lines + 1 if part.begin else 0  # the line that the byte before the part belongs to
    for number, line in split_lines(_chunks(handle, part), limit):
        yield before + number, line


def _chunks(handle: BinaryIO, part: ByteRange) -> Iterator[bytes]:
    """The bytes of the lines that begin in a part."""
    at = max(0, part.begin - 1)
    handle.seek(at)
    inside = part.begin == 0
    while chunk := handle.read(_READ):
        start = 0
        if not inside:
            start = chunk.find(b"\n") + 1
            inside = start > 0
            if not inside:
                at += len(chunk)
                continue
            if at + start >= part.end:  # the line that goes through this part ends behind it
                return
        end = chunk.find(b"\n", max(start, part.end - 1 - at)) + 1 if at + len(chunk) >= part.end else 0
        yield chunk[start : end or len(chunk)]
        if end:
            return
        at += len(chunk)
