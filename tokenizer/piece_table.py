# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""A growable table of distinct pieces with 64-bit counts: the heart of word counting.

Open addressing over one arena of bytes, so that a piece costs no Python object. Pieces belong to a group (a
language): the same bytes in two groups are two entries. Looking a piece up touches three cache lines: its slot,
which holds half the hash beside the entry's number, its entry, and its bytes. Kernels never allocate; when the
table may fill up they stop at a cursor, the class doubles what is short, and they go on.

In: texts, or pieces with amounts, as byte buffers with offsets. Out: arrays of distinct pieces, groups and
counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import hash_range, pair_key
from roots_pipeline.text.memory import inlined, kernel
from tokenizer.bytestring import copy_bytes, read_only, same_bytes
from tokenizer.pretokenize import find_ends, new_ends

Bytes = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

ENTRIES, _ARENA = 0, 1  # places in `used`
START, LENGTH, _GROUP, COUNT = range(4)  # columns of an entry
_EMPTY = -1
_LOW_HALF = np.uint64(0xFFFFFFFF)


class Table(NamedTuple):
    """`slots`: half the hash << 32 | entry, or -1; `entries`: (n, 4), the columns above; `arena`: the bytes."""

    slots: Int64
    entries: Int64
    arena: Bytes
    used: Int64


@inlined
def _hash(data, start, length, group):
    return pair_key(hash_range(data, start, start + length), np.uint64(group))


@inlined
def _mark(digest, entry):
    """What a slot holds: 31 bits of the hash that did not choose the slot, and the entry."""
    return (np.int64(digest >> np.uint64(33)) << 32) | entry


@inlined
def entry_of(slots, entries, arena, used, data, start, length, group):
    """The entry of a piece, added with count 0 if it is new; -1 if there is no room for it.

    Takes the table's arrays one by one: taking an array out of a tuple costs Numba an atomic reference count.
    """
    mask = slots.size - 1
    digest = _hash(data, start, length, group)
    wanted = _mark(digest, 0) >> 32
    slot = np.int64(digest & _LOW_HALF) & mask
    while slots[slot] != _EMPTY:
        if slots[slot] >> 32 == wanted:
            entry = slots[slot] & np.int64(0xFFFFFFFF)
            if (
                entries[entry, LENGTH] == length
                and entries[entry, _GROUP] == group
                and same_bytes(arena, entries[entry, START], data, start, length)
            ):
                return entry
        slot = (slot + 1) & mask
    entry = used[ENTRIES]
    place = used[_ARENA]
    if entry == entries.shape[0] or place + length > arena.size:
        return np.int64(-1)
    copy_bytes(arena, place, data, start, length)
    slots[slot] = _mark(digest, entry)
    entries[entry, START] = place
    entries[entry, LENGTH] = length
    entries[entry, _GROUP] = group
    entries[entry, COUNT] = 0
    used[ENTRIES] = entry + 1
    used[_ARENA] = place + length
    return entry


@kernel
def _count_texts(table, data, offsets, groups, ends, cursor):
    """Count the pieces of all texts from `cursor` (text, place) on; returns the bytes that lacked room or -1."""
    slots, entries, arena, used = table
    for text in range(cursor[0], offsets.size - 1):
        place = max(cursor[1], offsets[text])
        stop = offsets[text + 1]
        while place < stop:
            for index in range(find_ends(data, place, stop, ends)):
                end = ends.places[index]
                entry = entry_of(slots, entries, arena, used, data, place, end - place, groups[text])
                if entry < 0:
                    cursor[0] = text
                    cursor[1] = place
                    return end - place
                entries[entry, COUNT] += 1
                place = end
    return np.int64(-1)


@kernel
def _count_pieces(table, data, offsets, groups, amounts, cursor):
    """Add `amounts` to ready-made pieces from cursor[0] on; returns the bytes that lacked room, or -1."""
    slots, entries, arena, used = table
    for index in range(cursor[0], offsets.size - 1):
        length = offsets[index + 1] - offsets[index]
        entry = entry_of(slots, entries, arena, used, data, offsets[index], length, groups[index])
        if entry < 0:
            cursor[0] = index
            return length
        entries[entry, COUNT] += amounts[index]
    return np.int64(-1)


@kernel
def _fill_slots(slots, entries, arena, used):
    mask = slots.size - 1
    for entry in range(used):
        digest = _hash(arena, entries[entry, START], entries[entry, LENGTH], entries[entry, _GROUP])
        slot = np.int64(digest & _LOW_HALF) & mask
        while slots[slot] != _EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = _mark(digest, entry)


def new_table(entries: int, arena: int) -> Table:
    """An empty table with room for `entries` (a power of two) pieces of `arena` bytes together."""
    return Table(
        np.full(2 * entries, _EMPTY, np.int64),  # twice as many slots as entries keep probing short
        np.empty((entries, 4), np.int64),
        np.empty(arena, np.uint8),
        np.zeros(2, np.int64),
    )


class PieceTable:
    """Distinct pieces and how often each was seen, per group."""

    def __init__(self) -> None:
        self._table = new_table(1 << 14, 1 << 17)
        self._ends = new_ends()

    def __len__(self) -> int:
        return int(self._table.used[ENTRIES])

    @property
    def table(self) -> Table:
        """The arrays, for kernels of other modules; `grow` replaces them."""
        return self._table

    @property
    def arena_bytes(self) -> int:
        """Bytes of all distinct pieces together."""
        return int(self._table.used[_ARENA])

    def add_texts(self, data: Bytes, offsets: Int64, groups: Int32) -> None:
        """Cut texts (text i is data[offsets[i]:offsets[i + 1]], group groups[i]) into pieces and count them."""
        cursor = np.array([0, -1], np.int64)
        data, offsets = read_only(data), read_only(offsets)
        while (short := _count_texts(self._table, data, offsets, groups, self._ends, cursor)) >= 0:
            self.grow(short)

    def add_pieces(self, data: Bytes, offsets: Int64, groups: Int32, amounts: Int64) -> None:
        """Add an amount to each piece; sums must stay below 2^63, which the caller checks."""
        cursor = np.zeros(1, np.int64)
        data, offsets = read_only(data), read_only(offsets)
        while (short := _count_pieces(self._table, data, offsets, groups, amounts, cursor)) >= 0:
            self.grow(short)

    def entries(self) -> tuple[Bytes, Int64, Int64, Int64, Int64]:
        """(arena, starts, lengths, groups, counts) of all entries in order of first sight; views, no copies."""
        columns = self._table.entries[: len(self)]
        return self._table.arena, columns[:, START], columns[:, LENGTH], columns[:, _GROUP], columns[:, COUNT]

    def pieces(self) -> list[bytes]:
        """All pieces as Python objects, in order of first sight. For small tables."""
        arena, starts, lengths, _, _ = self.entries()
        text = arena[: self.arena_bytes].tobytes()
        return [text[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)]

    def grow(self, short: int) -> None:
        """Double the entries, the arena, or both; `short` is the length of the piece that found no room."""
        slots, entries, arena, used = self._table
        if used[_ARENA] + short > arena.size:
            arena = np.concatenate([arena, np.empty(max(arena.size, short), np.uint8)])
        if len(self) == len(entries):
            entries = np.concatenate([entries, np.empty_like(entries)])
            slots = np.full(2 * slots.size, _EMPTY, np.int64)
            _fill_slots(slots, entries, arena, len(self))
        self._table = Table(slots, entries, arena, used)
