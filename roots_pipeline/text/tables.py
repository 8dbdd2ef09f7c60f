# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""An open-addressing hash table for kernels that count one document after the other.

A slot is two uint64: the key, and a tag whose upper half is a stamp and whose lower half is a value of the caller's. A
slot is free unless it carries the stamp in use, so the next document only takes the next stamp and nothing is cleared.
Keys are 64-bit numbers whose low bits must be well mixed (`hashes.mix` is one-to-one, so it may mix exact keys too).

A small document uses the start of a large table: `mask` is the number of slots in use less one. A kernel that has
filled half of them returns, its caller takes a `grown` table, and the kernel goes on where it stopped. So a table is as
large as the largest number of different keys asks for, whatever the length of the document.
"""

from __future__ import annotations

import numpy as np

from roots_pipeline.text.memory import allocating, inlined

_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_SMALLEST = 64
LARGEST_START = 1 << 17
_RELEASE = 1 << 23


@allocating
def new_table(slots):
    """An empty table; `slots` is a power of two. Stamps start at 1."""
    return np.zeros(2 * slots, np.uint64)


@allocating
def reusable(table):
    """The table, or an empty one in place of a huge one, between two documents."""
    return table if table.size <= _RELEASE else new_table(_SMALLEST)


@inlined
def find(table, mask, key, stamp):
    """Index of the slot (of its key; the tag follows) that holds `key`, or of the free slot where it belongs."""
    slot = key & mask
    while True:
        index = slot << _ONE
        if (table[index | _ONE] >> _HALF) != stamp or table[index] == key:
            return index
        slot = (slot + _ONE) & mask


@inlined
def is_taken(table, index, stamp):
    """Whether the slot that `find` returned holds its key already."""
    return (table[index | _ONE] >> _HALF) == stamp


@inlined
def value_at(table, index):
    """The caller's value in a taken slot."""
    return np.int64(table[index | _ONE] & _LOW_HALF)


@inlined
def put(table, index, key, stamp, value):
    """Write a slot that `find` returned."""
    table[index] = key
    table[index | _ONE] = (stamp << _HALF) | np.uint64(value)


@allocating
def sized(table, entries):
    """The table, or a larger one, and the mask with which `entries` keys half fill it (at most LARGEST_START slots)."""
    slots = _SMALLEST
    while slots < 2 * entries and slots < LARGEST_START:
        slots *= 2
    if table.size < 2 * slots:
        table = new_table(slots)
    return table, np.uint64(slots - 1)


@allocating
def grown(table, mask, stamp):
    """A table of twice the slots in use, with the entries of `stamp`, and its mask."""
    slots = 2 * (np.int64(mask) + 1)
    bigger, new_mask = new_table(slots), np.uint64(slots - 1)
    for slot in range(slots // 2):
        index = np.uint64(2 * slot)
        if is_taken(table, index, stamp):
            place = find(bigger, new_mask, table[index], stamp)
            put(bigger, place, table[index], stamp, value_at(table, index))
    return bigger, new_mask


@inlined
def is_half_full(mask, entries):
    """Whether a table must grow before it takes another key."""
    return entries > np.int64(mask) >> 1
