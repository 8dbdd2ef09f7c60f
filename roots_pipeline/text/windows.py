# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""All windows of so many bytes, gathered into records such that equal windows, wherever they are, have equal keys.

The anchor of a window is its k-gram of smallest hash (k half the window, the rightmost of equals): winnowing
(Schleimer, Wilkerson, Aiken 2003). It depends on the bytes of the window alone, so equal windows have equal anchors.
Windows that share an anchor start one after the other; they form one record, whose key is the hash of the anchor:
about four records for each window length of text. Each window is in exactly one record.

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

BASE = MULTIPLIER  # of the polynomial hashes of k-grams; odd, 5 modulo 8
_FACTOR, _SHIFT = np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(29)
BLOCK = 1 << 14  # windows looked at in one go; a record ends with its block


class Records(NamedTuple):
    """Record i: `windows[i]` windows, the first at byte `start[i]` of text `text[i]`."""

    text: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    windows: npt.NDArray[np.int64]
    periodic: npt.NDArray[np.bool_]
    key: npt.NDArray[np.uint64]


def find_records(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], length: int) -> Records:
    """The records of all windows of `length` bytes (at least 2) that lie inside a text, in order."""
    table, periodic, key = _find_records(data, offsets, length)
    return Records(table[:, 0], table[:, 1], table[:, 2], periodic, key)


@allocating
def _find_records(data, offsets, length):
    half = length // 2
    span = length - half + 1  # k-grams in a window
    grams = np.empty(BLOCK + length, np.uint64)
    room = 64 + 5 * (offsets[-1] - offsets[0]) // length
    table, periodic, key = np.empty((room, 3), np.int64), np.empty(room, np.bool_), np.empty(room, np.uint64)
    found = 0
    for text in range(offsets.size - 1):
        begin, end = offsets[text], offsets[text + 1]
        for at in range(begin, end - length + 1, BLOCK):
            windows = min(BLOCK, end - length + 1 - at)
            _hash_grams(data, at, windows + span - 1, half, grams)
            if found + windows > key.size:
                more = max(windows, key.size)
                table = np.concatenate((table, np.empty((more, 3), np.int64)))
                periodic = np.concatenate((periodic, np.empty(more, np.bool_)))
                key = np.concatenate((key, np.empty(more, np.uint64)))
            before = found
            found = _gather_windows(grams, windows, span, half, table, periodic, key, found)
            for k in range(before, found):
                table[k, 0] = text
                table[k, 1] += at - begin
    return table[:found], periodic[:found], key[:found]


@kernel
def _hash_grams(data, at, count, size, grams):
    """The hash of each of `count` k-grams from byte `at` on."""
    value, leaving = np.uint64(0), power(size)
    for k in range(at, at + size - 1):
        value = value * BASE + np.uint64(data[k])
    for k in range(count):
        value = value * BASE + np.uint64(data[at + size - 1 + k])
        grams[k] = mix(value)
        # The first byte has been multiplied size - 1 times by now and goes before the next one comes.
        value -= np.uint64(data[at + k]) * leaving


@kernel
def power(size):
    """BASE ** (size - 1)."""
    value = np.uint64(1)
    for _ in range(size - 1):
        value *= BASE
    return value


@kernel
def _gather_windows(grams, windows, span, half, table, periodic, key, found):
    anchor, smallest = _smallest(grams, 0, span)
    first, again = 0, False
    for window in range(1, windows):
        new = window + span - 1  # the k-gram that this window brings in
        value = grams[new]
        if value <= smallest:
            if value == smallest and window - first <= half:
                anchor, again = new, True
                continue
            successor = new
        elif anchor < window:
            successor, value = _smallest(grams, window, span)
        else:
            continue
        found = _put(table, periodic, key, found, first, window, again, smallest)
        anchor, smallest, first, again = successor, value, window, False
    return _put(table, periodic, key, found, first, windows, again, smallest)


@inlined
def _smallest(grams, start, span):
    """The rightmost of the smallest k-grams of a window: (where it is, its hash)."""
    value = grams[start]
    for k in range(start + 1, start + span):
        value = min(value, grams[k])
    best = start + span - 1
    while grams[best] != value:
        best -= 1
    return best, value


@inlined
def _put(table, periodic, key, found, first, stop, again, anchor):
    table[found, 1], table[found, 2] = first, stop - first
    periodic[found], key[found] = again, anchor
    return found + 1


def hash_spans(
    data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Two independent 64-bit hashes of each `data[start[i]:stop[i]]`."""
    first, second = np.empty(len(start), np.uint64), np.empty(len(start), np.uint64)
    _hash_spans(data, start, stop, first, second)
    return first, second


@kernel
def _hash_spans(data, start, stop, first, second):
    for k in range(start.size):
        first[k] = hash_range(data, start[k], stop[k])
        value, i = np.uint64(stop[k] - start[k]), start[k]
        while i + 8 <= stop[k]:
            value = _step(value, load_eight(data, i))
            i += 8
        while i < stop[k]:
            value = _step(value, np.uint64(data[i]))
            i += 1
        second[k] = mix(value)


@inlined
def _step(value, item):
    value = (value + item) * _FACTOR
    return value ^ (value >> _SHIFT)
