# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""All windows of so many bytes, gathered into records such that equal windows, wherever they are, have equal keys.

The anchor of a window is the k-gram in it that comes first in an order of k-grams (k half the window; the rightmost of
equals): winnowing (Schleimer, Wilkerson, Aiken 2003). It depends on the bytes of the window alone, so equal windows
have equal anchors. Windows that share an anchor start one after the other; they form one record, whose key is the hash
of the anchor: about four records for each window length of text. Each window is in exactly one record.

The order is that of a hash of a k-gram's first bytes, at most eight, since that is one multiplication and no more.
K-grams that begin alike rank alike, and the rightmost is the anchor.

In periodic text the anchor's k-gram occurs again before the anchor leaves the window. Such a record goes on, or "aaaa"
would be one record a byte; it is marked `periodic`, since its windows may equal each other. No record has more than
length + 1 windows, so any two windows of a record touch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import MULTIPLIER, hash_range, mix
from roots_pipeline.text.memory import allocating, inlined, kernel, load_eight

_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
BLOCK = 1 << 13  # windows looked at in one go; a record ends with its block
# A rank is a hash and, below it, how far the k-gram is from the end of the block: the smallest is the rightmost.
_PLACE_BITS = 14
_LAST_PLACE = (1 << _PLACE_BITS) - 1
_HASH_BITS, _PLACE = np.uint32(0xFFFFFFFF - _LAST_PLACE), np.uint32(_LAST_PLACE)
LONGEST_WINDOW = 1 << 13
_HALF = np.uint64(32)


class Records(NamedTuple):
    """Record i: `windows[i]` windows, the first at byte `start[i]` of text `text[i]`, the anchor `place[i]` behind it.

    The place of a periodic record is that of its last anchor.
    """

    text: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    windows: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    periodic: npt.NDArray[np.bool_]
    key: npt.NDArray[np.uint64]


def find_records(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_], length: int
) -> Records:
    """The records of all windows of `length` bytes (2 to LONGEST_WINDOW) inside the texts that are wanted, in order."""
    return Records(*_find_records(data, offsets, wanted, length))


@kernel
def anchor_size(length):
    """Bytes of an anchor of windows of so many bytes."""
    return length // 2


@allocating
def _find_records(data, offsets, wanted, length):
    half = anchor_size(length)
    span = length - half + 1  # k-grams in a window
    ranks = np.empty(BLOCK + length, np.uint32)
    room = 64 + 5 * (offsets[-1] - offsets[0]) // length
    of, start, windows = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    place, periodic, key = np.empty(room, np.int32), np.empty(room, np.bool_), np.empty(room, np.uint64)
    found = 0
    for text in range(offsets.size - 1):
        if not wanted[text]:
            continue
        begin, end = offsets[text], offsets[text + 1]
        for at in range(begin, end - length + 1, BLOCK):
            count = min(BLOCK, end - length + 1 - at)
            if found + count > key.size:
                more = max(count, key.size)
                of = np.concatenate((of, np.empty(more, np.int64)))
                start = np.concatenate((start, np.empty(more, np.int64)))
                windows = np.concatenate((windows, np.empty(more, np.int32)))
                place = np.concatenate((place, np.empty(more, np.int32)))
                periodic = np.concatenate((periodic, np.empty(more, np.bool_)))
                key = np.concatenate((key, np.empty(more, np.uint64)))
            _rank_grams(data, at, count + span - 1, half, ranks)
            before = found
            found = _gather_windows(data, at, ranks, count, span, half, start, windows, place, periodic, key,
                                    found)
            for k in range(before, found):
                of[k] = text
                start[k] += at - begin
    return of[:found], start[:found], windows[:found], place[:found], periodic[:found], key[:found]


@kernel
def _rank_grams(data, at, count, size, ranks):
    """The rank of each of `count` k-grams from byte `at` on."""
    unused = np.uint64(8 * (8 - min(size, 8)))
    safe = max(0, min(count, data.size - 7 - at))  # where eight bytes can be loaded
    for k in range(safe):
        ranks[k] = _rank(load_eight(data, at + k) << unused, k)
    for k in range(safe, count):
        value = np.uint64(0)
        for i in range(min(size, 8)):
            value |= np.uint64(data[at + k + i]) << np.uint64(8 * i)
        ranks[k] = _rank(value << unused, k)


@inlined
def _rank(first_bytes, place):
    value = np.uint32((first_bytes * MULTIPLIER) >> _HALF)
    return (value & _HASH_BITS) | np.uint32(_LAST_PLACE - place)


@kernel
def _gather_windows(data, at, ranks, count, span, half, start, windows, place, periodic, key, found):
    grams = count + span - 1
    smallest = _smallest(ranks, 0, span)
    anchor = _place_of(smallest)
    gram, first, again = _hash_gram(data, at + anchor, half), 0, False
    new = span  # the k-gram that the next window brings in
    while True:
        stop = min(grams, anchor + span)
        while new < stop and ranks[new] > smallest:
            new += 1
        if new == grams:
            break
        window = new - span + 1
        smallest, before = ranks[new] if anchor >= window else _smallest(ranks, window, span), anchor
        anchor = _place_of(smallest)
        new += 1
        other = _hash_gram(data, at + anchor, half)
        if other == gram and window - first <= half:
            again = True
            continue
        found = _put(start, windows, place, periodic, key, found, first, window, before, again, gram)
        gram, first, again = other, window, False
    return _put(start, windows, place, periodic, key, found, first, count, anchor, again, gram)


@inlined
def _smallest(ranks, start, span):
    # Unsigned places, because Numba looks whether others are negative, and that is no vector instruction.
    value = ranks[start]
    for k in range(span):
        value = min(value, ranks[np.uint64(start) + np.uint64(k)])
    return value


@inlined
def _place_of(rank):
    return _LAST_PLACE - np.int64(rank & _PLACE)


@inlined
def _put(start, windows, place, periodic, key, found, first, stop, anchor, again, gram):
    start[found], windows[found], place[found] = first, stop - first, anchor - first
    periodic[found], key[found] = again, gram
    return found + 1


@inlined
def _hash_gram(data, at, size):
    """64-bit hash of a k-gram; its products do not wait for each other."""
    if size < 8:
        return hash_range(data, at, at + size)
    value, factor = np.uint64(0), MULTIPLIER
    for k in range(at, at + size - 8, 8):
        value += _fold(load_eight(data, k)) * factor
        factor *= _FACTOR
    return mix(value + _fold(load_eight(data, at + size - 8)) * factor)


@inlined
def _fold(item):
    return item ^ (item >> _HALF)


def hash_anchors(
    data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], length: int
) -> npt.NDArray[np.uint64]:
    """The keys of records of windows of `length` bytes, from where their anchors begin in `data`."""
    keys = np.empty(len(start), np.uint64)
    _hash_anchors(data, start, anchor_size(length), keys)
    return keys


@kernel
def _hash_anchors(data, start, size, keys):
    for k in range(start.size):
        keys[k] = _hash_gram(data, start[k], size)


def hash_sides(
    data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64],
    place: npt.NDArray[np.int32], length: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Hashes of the bytes before and behind the anchor of each record `data[start[i]:stop[i]]`.

    So many bytes a side that records of different content with a common window agree on one side at least. 0 where a
    record has fewer.
    """
    before, behind = np.empty(len(start), np.uint32), np.empty(len(start), np.uint32)
    _hash_sides(data, start, stop, place, length, before, behind)
    return before, behind


@kernel
def _hash_sides(data, start, stop, place, length, before, behind):
    size = anchor_size(length)
    # A common window is the anchor and length - size bytes around it: at least half of them on one side.
    reach = (length - size + 1) // 2
    for k in range(start.size):
        first = start[k] + place[k]
        last = first + size
        before[k] = _side(data, first - reach, first) if first - reach >= start[k] else 0
        behind[k] = _side(data, last, last + reach) if last + reach <= stop[k] else 0


@inlined
def _side(data, start, stop):
    return np.uint32(hash_range(data, start, stop) >> _HALF) | np.uint32(1)
