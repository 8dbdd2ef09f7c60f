"""A WARC file cut into records, with every byte accounted for.

Libraries that read WARC believe each `Content-Length`: a wrong one makes them stop, skip records or glue two
together, and a file that was cut off ends without a word. Here what follows a record is looked at before
the record is believed. In: a file, plain, gzip, zstd or lz4. Out: records (header and block), and `Loss`
where bytes were lost, with the number of the record.

Neither damage nor a wrong length reaches beyond one stretch of the file (see `warc_stream`).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from roots_pipeline.sources.warc_stream import PADDING, VERSION, Stretches, opened

MAX_HEADER = 64 << 10
_READ = 1 << 20
# At the beginning of a line; the look-behind comes second, so that the search is for a fixed string.
_START = re.compile(rb"WARC/(?<![^\r\n]WARC/)[0-9]\.[0-9]{1,2}\r?\n")
_END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
# Where a block must end if another record follows; the standard asks for two line ends in between.
_NEXT = re.compile(rb"\r?\n\r?\n(?=WARC/[0-9]\.[0-9]{1,2}\r?\n)")
_LAST = re.compile(rb"\r?\n\r?\n\Z")
_LENGTH = re.compile(rb"\ncontent-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record: its place in the file counted from 1, header with its blank line, and block.

    `size` is the length of the whole block; of one longer than the limit, `block` has the beginning only.
    `wrong_length` says what is wrong with the record's `Content-Length`, by what follows.
    """

    number: int
    header: bytes
    block: bytes
    size: int
    wrong_length: str | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes that became no record, or a record that is not whole: why, and how it begins."""

    number: int
    reason: str
    head: bytes = b""


def read_records(handle: BinaryIO, limit: int) -> Iterator[RawRecord | Loss]:
    """The records of a file in order. Of blocks longer than `limit` bytes only the beginning is kept in memory."""
    stream = Stretches(opened(handle))
    number = 0
    while stream.next_stretch():
        number = yield from _stretch(stream, limit, number)
        if stream.damage is not None:
            yield Loss(number or 1, stream.damage)


def _stretch(stream: Stretches, limit: int, number: int) -> Generator[RawRecord | Loss, None, int]:
    """The records of one stretch, the first of which has `number` records before it; returns the last number."""
    while stream.skip_padding():
        stream.fill(16)
        if not _START.match(stream.data):
            yield _skip_to_record(stream, number)
            continue
        number += 1
        header = stream.find(_END_OF_HEADER, 0, MAX_HEADER)
        later = _last_start(stream, header.end() if header else MAX_HEADER)
        if header is None or later:
            broken = later or len(stream.data) >= MAX_HEADER
            reason = "the header of this record does not end" if broken else _cut(stream, "in its header")
            yield Loss(number, reason, bytes(stream.data[:200]))
            stream.drop(later or (len(VERSION) if broken else len(stream.data)))
            continue
        head = bytes(stream.data[: header.end()])
        del stream.data[: header.end()]
        yield _record(stream, limit, number, head)
    return number


def _last_start(stream: Stretches, end: int) -> int:
    """Where the last record before `end` seems to begin, after the one at 0; 0 if none does."""
    return max((found.start() for found in _START.finditer(stream.data, 1, end)), default=0)


def _record(stream: Stretches, limit: int, number: int, header: bytes) -> RawRecord | Loss:
    """The record whose block begins now, with its length checked against what follows."""
    lengths = {int(found) for found in _LENGTH.findall(header)}
    length = lengths.pop() if len(lengths) == 1 else None
    if length is not None and length > limit and stream.fill(limit):
        block = bytes(stream.data[:MAX_HEADER])  # enough to tell what it is
        there = stream.drop(length)
        if there < length:
            return Loss(number, _cut(stream, f"{there:,} of {length:,} bytes of its block are there"), header)
        return RawRecord(number, header, block, length)
    if length is not None and stream.fill(length) and _ends_at(stream, length):
        return _taken(stream, number, header, length, _too_close(stream, length))
    said = "the record has no readable Content-Length"
    if length is not None:
        said = f"the record has a Content-Length of {length:,}"
    padding = PADDING.match(stream.data) if length is None and stream.fill(16) else None
    if padding and _START.match(stream.data, padding.end()):
        return _taken(stream, number, header, 0, f"{said}; another record follows its header")
    found = stream.find(_NEXT, 0, limit)
    if found:
        wrong = f"{said}; its block of {found.start():,} bytes was found by the record that follows"
        return _taken(stream, number, header, found.start(), wrong)
    there = len(stream.data)
    if length is not None and there >= length:
        return _taken(stream, number, header, length, None)  # what follows it is no record: the next turn says so
    end = _LAST.search(stream.data) if there < limit and stream.damage is None else None
    if end:  # the two line ends after a block are there: it is whole, and its length is not
        wrong = f"{said}; its block of {end.start():,} bytes was taken to reach to the end"
        return _taken(stream, number, header, end.start(), wrong)
    reason = f"{said}, and no other record follows it"
    if there < limit:
        size = "" if length is None else f"of {length:,} "
        reason = _cut(stream, f"{there:,} {size}bytes of its block are there")
    stream.drop(there)
    return Loss(number, reason, header)


def _taken(stream: Stretches, number: int, header: bytes, size: int, wrong: str | None) -> RawRecord:
    block = bytes(stream.data[:size])
    del stream.data[:size]
    return RawRecord(number, header, block, size, wrong)


def _ends_at(stream: Stretches, length: int) -> bool:
    """Whether a block can end there: another record follows, or nothing."""
    stream.fill(length + 32)
    rest = bytes(stream.data[length : length + 32])
    padding = PADDING.match(rest)
    rest = rest[padding.end() :] if padding else rest
    return not rest or rest.startswith(VERSION[: len(rest)])


def _too_close(stream: Stretches, length: int) -> str | None:
    """A sentence if less than the two line ends of the standard part a block from the next record."""
    rest = bytes(stream.data[length : length + 32])
    before = rest.partition(VERSION)[0]
    if before == rest or before.count(b"\n") >= 2:
        return None
    return f"the next record follows the block of {length:,} bytes too closely; its end may be missing"


def _cut(stream: Stretches, where: str) -> str:
    """The reason for a record that the end of the stretch cuts off. Damage there is told with it, not again."""
    cause, stream.damage = stream.damage or "the file is cut off", None
    return f"{cause}; this record ends {where}" if where.startswith("in") else f"{cause}: {where}"


def _skip_to_record(stream: Stretches, number: int) -> Loss:
    """Leave out what stands where a record should begin."""
    head = bytes(stream.data[:200])
    skipped = 0
    while True:
        found = stream.find(_START, 0, _READ)
        if found:
            skipped += stream.drop(found.start())
            break
        skipped += stream.drop(max(1, len(stream.data) - 16))
        if not stream.fill(17):
            skipped += stream.drop(len(stream.data))
            break
    place = f"after record {number}" if number else "at the beginning"
    return Loss(max(number, 1), f"{skipped:,} bytes {place} belong to no WARC record", head)
