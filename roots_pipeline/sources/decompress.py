"""Bytes of a file that may be compressed, and what was lost where it is damaged.

The format is told by the first bytes, because names lie. Compressed members that follow each other (`cat
a.gz b.gz`, bgzip, pzstd) are one stream. Damage costs the rest of one member and not of the file: reading
goes on at the next member. Memory stays bounded whatever the input, because compressed bytes are expanded
in small pieces.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import zstandard

_READ = 1 << 20
_FOREIGN = {
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


@dataclass(frozen=True, slots=True)
class Damage:
    """A place where bytes were lost: why, and the beginning of the line they belonged to."""

    reason: str
    head: bytes = b""


class MemberStart:
    """Stands before the content of each compressed member, in the stream that `members` gives."""


@dataclass(frozen=True, slots=True)
class _Format:
    """`magic` begins a member, `start` tells one from chance; `expand(decoder, data)` takes `piece` bytes at a time."""

    name: str
    magic: re.Pattern[bytes]
    start: re.Pattern[bytes]
    piece: int
    decoder: Callable[[], Any]
    expand: Callable[[Any, bytes], bytes]


_FORMATS = (
    _Format(
        "gzip",  # RFC 1952, 2.3: reserved flags 0; usually extra flags 0, 2 or 4 and a known operating system
        re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"),
        re.compile(rb"\x1f\x8b\x08[\x00-\x1f].{4}[\x00\x02\x04][\x00-\x13\xff]", re.DOTALL),
        32 << 10,
        lambda: zlib.decompressobj(wbits=31),
        lambda decoder, data: decoder.decompress(data, _READ),
    ),
    _Format(
        "zstd",  # RFC 8878: a frame or a skippable frame
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        4 << 10,  # four bytes may stand for a block of 128 KiB
        # Archives made with --long=31 need a window of 2 GiB, which the library refuses by default.
        lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(),
        lambda decoder, data: decoder.decompress(data),
    ),
)
_HEADER = 10  # bytes that decide whether a member starts


def decompressed(handle: BinaryIO) -> Iterator[bytes | Damage]:
    """The content in pieces of about 1 MiB (128 MiB from hostile zstd), and `Damage` where some is lost.

    A format that cannot be read as lines gives a single `Damage`.
    """
    first = handle.read(_READ)
    for magic, kind in _FOREIGN.items():
        if first.startswith(magic):
            yield Damage(f"this is {kind}, not plain, gzip or zstd text in UTF-8", first[:200])
            return
    yield from _gathered(piece for piece in members(handle, first) if not isinstance(piece, MemberStart))


def is_plain(first: bytes) -> bool:
    """Whether a file that begins with these (ten or more) bytes is neither compressed nor known to be no text."""
    return not first.startswith(tuple(_FOREIGN)) and not any(form.magic.match(first) for form in _FORMATS)


def members(handle: BinaryIO, first: bytes) -> Iterator[bytes | Damage | MemberStart]:
    """The same without gathering, with the borders between members. `first` was read from `handle` before."""
    for form in _FORMATS:
        if form.magic.match(first):
            yield from _Members(handle, first, form).read()
            return
    while first:
        yield first
        first = handle.read(_READ)


def member_start(data: bytes) -> int:
    """Where the first compressed member seems to begin; -1 if nowhere."""
    places = (found.start() for form in _FORMATS if (found := form.start.search(data)))
    return min(places, default=-1)


def _gathered(pieces: Iterator[bytes | Damage]) -> Iterator[bytes | Damage]:
    """The same content in larger pieces, which cost less to cut into lines."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        if isinstance(piece, Damage) or size >= _READ:
            yield b"".join(held)
            held, size = [], 0
        if isinstance(piece, Damage):
            yield piece
        else:
            held.append(piece)
            size += len(piece)
    yield b"".join(held)


class _Members:
    """The members of one compressed file, one after the other."""

    def __init__(self, handle: BinaryIO, first: bytes, form: _Format) -> None:
        self._handle, self._data, self._at, self._form = handle, first, 0, form

    def read(self) -> Iterator[bytes | Damage | MemberStart]:
        while self._more(_HEADER):
            if self._form.magic.match(self._data, self._at):
                yield MemberStart()
                yield from self._member()
            elif self._data.count(0, self._at) == len(self._data) - self._at:
                self._at = len(self._data)  # zero padding, as tapes and block devices leave it
            else:
                yield Damage(f"bytes between or after the {self._form.name} members are none themselves")
                self._resynchronise()

    def _member(self) -> Iterator[bytes | Damage]:
        decoder = self._form.decoder()
        while not decoder.eof:
            if not self._more(1):
                yield decoder.flush() or b""
                yield Damage(f"the file is cut off inside a {self._form.name} stream")
                return
            piece = self._data[self._at : self._at + self._form.piece]
            try:
                out = self._form.expand(decoder, piece)
            except (zlib.error, zstandard.ZstdError) as error:
                # The checksum stands at the end, so bytes that went out before may have been wrong already.
                yield Damage(f"the {self._form.name} stream is damaged here or in lines before: {error}")
                self._at += 1
                self._resynchronise()
                return
            self._at += len(piece) - len(decoder.unused_data) - len(decoder.unconsumed_tail)
            if out:
                yield out

    def _more(self, wanted: int) -> bool:
        """Whether a byte is left, after trying to have `wanted` bytes at hand."""
        while len(self._data) - self._at < wanted:
            block = self._handle.read(_READ)
            if not block:
                break
            self._data, self._at = self._data[self._at :] + block, 0
        return self._at < len(self._data)

    def _resynchronise(self) -> None:
        """Go to the next place that looks like the start of a member, or to the end."""
        while self._more(_HEADER):
            found = self._form.start.search(self._data, self._at)
            if found:
                self._at = found.start()
                return
            at_end = len(self._data) - self._at < _HEADER
            self._at = len(self._data) if at_end else max(self._at, len(self._data) - _HEADER + 1)
