"""The decompressed bytes of a WARC file, in stretches that cannot harm each other.

A stretch ends where decompression fails, and where a compressed member begins with a record of its own, as the
standard recommends (ISO 28500, annex D). In: a file, plain, gzip, zstd (also with a dictionary) or lz4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from fastwarc.stream_io import Lz4Reader, ZstdReader

from roots_pipeline.sources.decompress import Damage, MemberStart, member_start, members

VERSION = b"WARC/"
PADDING = re.compile(rb"[\r\n \t\0]*")
_READ = 1 << 20
_LZ4 = b"\x04\x22\x4d\x18"
_ZSTD_DICTIONARY = b"\x5d\x2a\x4d\x18"  # a .warc.zst whose first frame is the dictionary of the others


def opened(handle: BinaryIO) -> Iterator[bytes | Damage | MemberStart]:
    """The decompressed file. Formats that our own decompressor lacks go through FastWARC's."""
    first = handle.read(_READ)
    if not first.startswith((_LZ4, _ZSTD_DICTIONARY)):
        start = member_start(first) if VERSION not in first else 0
        if start > 0:  # a compressed file that lost its beginning
            yield Damage(f"{start:,} bytes at the beginning are neither a WARC record nor compressed")
        yield from members(handle, first[max(start, 0) :])
        return
    whole = _Rest(handle, first)
    reader = Lz4Reader(whole) if first.startswith(_LZ4) else ZstdReader(whole)  # type: ignore[arg-type]
    while True:
        try:
            piece = reader.read(64 << 10)
        except Exception as error:
            if whole.error is not None:  # the disk or the store failed, not the data
                raise whole.error from error
            yield Damage(f"the file is cut off or damaged: {error}")
            return
        if not piece:
            return
        yield piece


class _Rest:
    """A file whose first bytes have been read already; remembers an error of reading it."""

    def __init__(self, handle: BinaryIO, first: bytes) -> None:
        self._handle, self._first, self._at = handle, first, 0
        self.error: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._first or self._handle.read(size)
        except Exception as error:
            self.error = error
            raise
        if size >= 0 and len(data) > size:
            data, self._first = data[:size], data[size:]
        else:
            self._first = b""
        self._at += len(data)
        return data

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        """The file belongs to whoever opened it."""


class Stretches:
    """The decompressed bytes of one stretch at a time; `data` is what has been read and not yet used."""

    def __init__(self, pieces: Iterator[bytes | Damage | MemberStart]) -> None:
        self._pieces = pieces
        self._next: bytes | None = b""  # the beginning of the next stretch; None after the last
        self.data = bytearray()
        self.damage: str | None = None
        self._ended = False

    def next_stretch(self) -> bool:
        """Go to the next stretch; what is left of this one is dropped."""
        if self._next is None:
            return False
        self.data, self._next = bytearray(self._next), None
        self.damage, self._ended = None, False
        return True

    def fill(self, size: int) -> bool:
        """Have at least `size` bytes at hand. False if the stretch has fewer."""
        while len(self.data) < size and not self._ended:
            piece = next(self._pieces, None)
            if isinstance(piece, bytes):
                self.data += piece
            elif isinstance(piece, MemberStart):
                self._member()
            else:
                self._ended = True
                if piece is not None:
                    self.damage, self._next = piece.reason, b""
        return len(self.data) >= size

    def _member(self) -> None:
        """End the stretch if the member that begins now begins with a record."""
        head = b""
        while len(head) < len(VERSION):
            piece = next(self._pieces, None)
            if isinstance(piece, bytes):
                head += piece
            elif not isinstance(piece, MemberStart):
                break
        else:
            piece = None
        if head.startswith(VERSION) and not PADDING.fullmatch(self.data):
            self._next, self._ended = head, True
        else:
            self.data += head
        if isinstance(piece, Damage):
            self.damage, self._next, self._ended = piece.reason, b"", True

    def drop(self, size: int) -> int:
        """Leave out `size` bytes without holding them; the number that there were."""
        left = size
        while True:
            used = min(left, len(self.data))
            del self.data[:used]
            left -= used
            if not left or not self.fill(1):
                return size - left

    def skip_padding(self) -> bool:
        """Leave out blank lines, white space and zero bytes between records. False at the end of the stretch."""
        while self.fill(1):
            padding = PADDING.match(self.data)
            del self.data[: padding.end() if padding else 0]
            if self.data:
                return True
        return False

    def find(self, pattern: re.Pattern[bytes], start: int, most: int) -> re.Match[bytes] | None:
        """The first match that begins in `data[start:most]`, reading as far as needed."""
        while True:
            match = pattern.search(self.data, start)
            if match and match.start() < most:
                return match
            start = max(start, len(self.data) - 16)  # longer than what a pattern may match
            if len(self.data) >= most or not self.fill(len(self.data) + 1):
                return None
