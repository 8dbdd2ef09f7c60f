# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Which pair of tokens to merge next: 64-bit counts by pair, and a heap of candidates.

The order is that of Hugging Face's trainer: highest count first, among equal counts the pair with the smaller
left id, then the smaller right id. A heap entry remembers the count a pair had when it was pushed; it may be
out of date, and whoever pops it compares it with the pair's present count.

A pair is one int64, left id << 32 | right id. The kernels expect room (`merge_loop` checks it before each step)
and take the arrays themselves, not the tuples: taking an array out of a tuple costs Numba an atomic reference
count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel

Int64 = npt.NDArray[np.int64]

NO_PAIR = -1
KEY, COUNT = 0, 1  # columns of Pairs.rows


class Pairs(NamedTuple):
    """Open addressing. `rows`: (n, 2) int64, pair and count; `used`: how many pairs there are."""

    rows: Int64
    used: Int64


class Queue(NamedTuple):
    """A binary heap. `rows`: (n, 3) int64: count, pair, number of the occurrence list; `used`: its length."""

    rows: Int64
    used: Int64


def new_pairs(size: int) -> Pairs:
    """An empty table of `size` (a power of two) slots."""
    rows = np.zeros((size, 2), np.int64)
    rows[:, KEY] = NO_PAIR
    return Pairs(rows, np.zeros(1, np.int64))


def new_queue(size: int) -> Queue:
    """An empty heap with room for `size` candidates."""
    return Queue(np.empty((size, 3), np.int64), np.zeros(1, np.int64))


@inlined
def join_pair(left, right):
    """The int64 that stands for a pair."""
    return (np.int64(left) << 32) | np.int64(right)


@inlined
def pair_slot(rows, used, pair):
    """The slot of a pair in a table's arrays, added with count 0 if it is new."""
    mask = rows.shape[0] - 1
    slot = np.int64(mix(np.uint64(pair)) & np.uint64(mask))
    while rows[slot, KEY] != pair:
        if rows[slot, KEY] == NO_PAIR:
            rows[slot, KEY] = pair
            used[0] += 1
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def move_pairs(source, target, used):
    """Copy all rows of a table into those of a larger, empty one."""
    for slot in range(source.shape[0]):
        if source[slot, KEY] != NO_PAIR:
            target[pair_slot(target, used, source[slot, KEY]), COUNT] = source[slot, COUNT]


@inlined
def _before(rows, index, count, pair):
    """Whether the candidate at `index` comes before one with this count and pair."""
    return rows[index, 0] > count or (rows[index, 0] == count and rows[index, 1] < pair)


@inlined
def _place(rows, index, count, pair, entry):
    rows[index, 0] = count
    rows[index, 1] = pair
    rows[index, 2] = entry


@inlined
def push(rows, used, count, pair, entry):
    """Add a candidate to a heap's arrays."""
    index = used[0]
    used[0] += 1
    while index > 0:
        parent = (index - 1) >> 1
        if _before(rows, parent, count, pair):
            break
        _place(rows, index, rows[parent, 0], rows[parent, 1], rows[parent, 2])
        index = parent
    _place(rows, index, count, pair, entry)


@inlined
def replace_first(rows, size, count, pair, entry):
    """Put a candidate in the place of the first of `size` ones and restore the order."""
    index = 0
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        other = child + 1
        if other < size and _before(rows, other, rows[child, 0], rows[child, 1]):
            child = other
        if not _before(rows, child, count, pair):
            break
        _place(rows, index, rows[child, 0], rows[child, 1], rows[child, 2])
        index = child
    _place(rows, index, count, pair, entry)


@inlined
def drop_first(rows, used):
    """Remove the first candidate."""
    last = used[0] - 1
    used[0] = last
    if last > 0:
        replace_first(rows, last, rows[last, 0], rows[last, 1], rows[last, 2])
