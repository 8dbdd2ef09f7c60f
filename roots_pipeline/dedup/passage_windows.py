# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Which windows of some byte strings occur more than once, decided byte by byte.

In: byte strings with the same anchor (see `text.windows`), best rank first. A few strings are laid over each other by
their anchors, and what they share around it is one comparison outwards. The windows of many, or of strings in which the
anchor occurs again, go through a hash table. Out: for each string the range from its first to its last window that
occurs elsewhere, and one string it occurs in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import MULTIPLIER, mix
from roots_pipeline.text.memory import allocating, inlined, kernel

Numbers = npt.NDArray[np.int64]

BASE = MULTIPLIER  # of the polynomial hash of a window; odd

_WINDOW_BITS = 24  # a string has at most length + 1 windows
_FEW = 16
_MOST_WINDOWS = (1 << _WINDOW_BITS) - 1


class Shared(NamedTuple):
    """For string i: its windows `first[i]` to `last[i]` occur before, in string `twin[i]`.

    Its windows `held_first[i]` to `held_last[i]` occur again later. Both last ones are -1 if there are no such windows.
    """

    first: Numbers
    last: Numbers
    twin: Numbers
    held_first: Numbers
    held_last: Numbers


def shared_windows(
    groups: Numbers, data: npt.NDArray[np.uint8], offsets: Numbers, places: npt.NDArray[np.int32], length: int,
    all_copies: bool,
) -> Shared:
    """The windows that strings `data[offsets[i]:offsets[i + 1]]` share.

    `groups` says where groups begin in the strings (and the end); only windows of one group are compared. `places` says
    where each string has its anchor, -1 if it is periodic. With `all_copies` a first copy counts as one, too.
    """
    count = len(offsets) - 1
    shared = Shared(np.full(count, _MOST_WINDOWS), np.full(count, -1), np.full(count, -1),
                    np.full(count, _MOST_WINDOWS), np.full(count, -1))
    _shared_windows(groups, data, offsets, places, length, all_copies, shared)
    return shared


@allocating
def _shared_windows(groups, data, offsets, places, length, all_copies, shared):
    slots, stamps = np.empty(64, np.int64), np.full(64, -1, np.int64)
    leaving = np.uint64(1)
    for _ in range(length - 1):
        leaving *= BASE
    for group in range(groups.size - 1):
        begin, end = groups[group], groups[group + 1]
        if end - begin <= _FEW and places[begin:end].min() >= 0:
            for k in range(begin, end):
                for other in range(begin, k):
                    _lay_over(k, other, data, offsets, places, length, all_copies, shared)
            continue
        windows = offsets[end] - offsets[begin] - (end - begin) * (length - 1)
        bits = 6
        while (1 << bits) < 2 * windows:
            bits += 1
        if slots.size < (1 << bits):
            slots, stamps = np.empty(1 << bits, np.int64), np.full(1 << bits, -1, np.int64)
        for k in range(begin, end):
            _enter(k, data, offsets, length, leaving, all_copies, slots, stamps, group, bits, shared)


@kernel
def _lay_over(k, other, data, offsets, places, length, all_copies, shared):
    """Note the windows of string k that lie in what it shares with another around their anchors."""
    a, b = offsets[k] + places[k], offsets[other] + places[other]
    before, behind = min(places[k], places[other]), min(offsets[k + 1] - a, offsets[other + 1] - b)
    left = right = 0
    while left < before and data[a - left - 1] == data[b - left - 1]:
        left += 1
    while right < behind and data[a + right] == data[b + right]:
        right += 1
    if left + right >= length:
        for at in (-left, right - length):
            _note(shared, k, places[k] + at, other, places[other] + at, all_copies)


@kernel
def _enter(k, data, offsets, length, leaving, all_copies, slots, stamps, group, bits, shared):
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
        _note(shared, k, window, owner, there - offsets[owner], all_copies)


@inlined
def _equal(data, a, b, length):
    # Without an early end, so that it compiles to vector instructions.
    different = np.uint8(0)
    for k in range(length):
        different |= data[a + k] ^ data[b + k]
    return different == 0


@inlined
def _note(shared, k, window, other, earlier, all_copies):
    """A window of string k is an earlier one of another string (or the same)."""
    _mark(shared.first, shared.last, shared.twin, k, window, other)
    if all_copies:
        _mark(shared.first, shared.last, shared.twin, other, earlier, k)
    else:
        shared.held_first[other] = min(shared.held_first[other], earlier)
        shared.held_last[other] = max(shared.held_last[other], earlier)


@inlined
def _mark(first, last, twin, k, window, other):
    first[k], last[k] = min(first[k], window), max(last[k], window)
    if twin[k] < 0:
        twin[k] = other


def holders(
    rows: Numbers, start: Numbers, stop: Numbers, goes: npt.NDArray[np.bool_], asked: npt.NDArray[np.bool_], length: int
) -> npt.NDArray[np.bool_]:
    """Which of the rows that are asked for hold a window of `length` bytes that others lose.

    Spans `[start, stop)` of rows, sorted by both, either go or are held for others; what goes is not held.
    """
    holding = np.zeros(len(asked), np.bool_)
    _find_holders(rows, start, stop, goes, asked, length, holding)
    return holding


@kernel
def _find_holders(rows, start, stop, goes, asked, length, holding):
    gone, row = 0, -1  # up to where the row is cut by the spans so far
    for i in range(rows.size):
        if rows[i] != row:
            gone, row = 0, rows[i]
        if goes[i]:
            gone = max(gone, stop[i])
        elif asked[row] and not holding[row]:
            left = max(gone, start[i])
            k = i + 1
            while k < rows.size and rows[k] == row and start[k] < stop[i] and not holding[row]:
                if goes[k]:
                    holding[row] = start[k] - left >= length
                    left = max(left, stop[k])
                k += 1
            holding[row] |= stop[i] - left >= length
