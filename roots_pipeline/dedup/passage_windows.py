# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Which windows of some byte strings occur more than once, decided byte by byte.

In: byte strings with the same anchor (see `text.windows`), best rank first. All windows go through one hash table.
Out: for each string the range from its first to its last window that occurs elsewhere, and one string it occurs in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import allocating, inlined, kernel
from roots_pipeline.text.windows import BASE, power

Numbers = npt.NDArray[np.int64]

_WINDOW_BITS = 24  # a string has at most length + 1 windows
_MOST_WINDOWS = (1 << _WINDOW_BITS) - 1


def candidates(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Keys that may occur more than once: all that do, and a few others. Sorting them all would take longer."""
    bits = max(10, int(8 * len(keys)).bit_length())
    mask = np.zeros(len(keys), np.bool_)
    _candidates(keys, np.zeros(1 << bits, np.uint8), np.uint64((1 << bits) - 1), mask)
    return mask


@kernel
def _candidates(keys, seen, low_bits, mask):
    for k in range(keys.size):
        place = keys[k] & low_bits
        seen[place] = min(seen[place] + 1, 2)
    for k in range(keys.size):
        mask[k] = seen[keys[k] & low_bits] == 2


def shared_windows(
    groups: Numbers, data: npt.NDArray[np.uint8], offsets: Numbers, length: int, all_copies: bool
) -> tuple[Numbers, Numbers, Numbers]:
    """(first, last, twin) for string i, `data[offsets[i]:offsets[i + 1]]`: windows that occur before, in string `twin`.

    `groups` says where groups begin in the strings (and the end); only windows of one group are compared. With
    `all_copies`, the first copy counts, too. last is -1 for strings without such a window.
    """
    first = np.full(len(offsets) - 1, _MOST_WINDOWS, np.int64)
    last, twin = np.full_like(first, -1), np.full_like(first, -1)
    _shared_windows(groups, data, offsets, length, all_copies, first, last, twin)
    return first, last, twin


@allocating
def _shared_windows(groups, data, offsets, length, all_copies, first, last, twin):
    slots, stamps = np.empty(64, np.int64), np.full(64, -1, np.int64)
    leaving = power(length)
    for group in range(groups.size - 1):
        begin, end = groups[group], groups[group + 1]
        windows = offsets[end] - offsets[begin] - (end - begin) * (length - 1)
        bits = 6
        while (1 << bits) < 2 * windows:
            bits += 1
        if slots.size < (1 << bits):
            slots, stamps = np.empty(1 << bits, np.int64), np.full(1 << bits, -1, np.int64)
        for k in range(begin, end):
            _enter(k, data, offsets, length, leaving, all_copies, slots, stamps, group, bits, first, last, twin)


@kernel
def _enter(k, data, offsets, length, leaving, all_copies, slots, stamps, group, bits, first, last, twin):
    """Look up all windows of string k, and enter those that are not there."""
    base = offsets[k]
    value = np.uint64(0)
    for i in range(base, base + length - 1):
        value = value * BASE + np.uint64(data[i])
    expected = np.int64(-1)  # where the window that continues the last match lies; all but its last byte are equal
    for window in range(offsets[k + 1] - base - length + 1):
        at = base + window
        value = value * BASE + np.uint64(data[at + length - 1])
        slot = np.int64(mix(value) >> np.uint64(64 - bits))
        value -= np.uint64(data[at]) * leaving
        while stamps[slot] == group:
            owner = slots[slot] >> _WINDOW_BITS
            there = offsets[owner] + (slots[slot] & _MOST_WINDOWS)
            if there == expected:
                if data[there + length - 1] == data[at + length - 1]:
                    break
            elif _equal(data, there, at, length):
                break
            slot = (slot + 1) & ((1 << bits) - 1)
        if stamps[slot] != group:
            slots[slot], stamps[slot] = (k << _WINDOW_BITS) | window, group
            expected = np.int64(-1)
            continue
        expected = there + 1
        _mark(first, last, twin, k, window, owner)
        if all_copies:
            _mark(first, last, twin, owner, there - offsets[owner], k)


@inlined
def _equal(data, a, b, length):
    # Without an early end, so that it compiles to vector instructions.
    different = np.uint8(0)
    for k in range(length):
        different |= data[a + k] ^ data[b + k]
    return different == 0


@inlined
def _mark(first, last, twin, k, window, other):
    first[k], last[k] = min(first[k], window), max(last[k], window)
    if twin[k] < 0:
        twin[k] = other
