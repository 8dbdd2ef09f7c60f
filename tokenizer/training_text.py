# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The text that BPE training works on: every distinct piece once, as cells that hold token ids.

    cells   -1  a  b  c  -1  x  y  -1 ...      one cell a byte, OUTSIDE around each piece

When tokens merge, the first and the last cell of the new token hold its id and the cells between hold INSIDE.
So the neighbours of a token are found by its length alone, nothing ever moves, and a remembered position stays
meaningful: it is where a token began. `Occurrences` remembers, for every candidate pair, where the pair was
when it came up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import kernel
from tokenizer.alphabet import FIRST_MERGE_ID, byte_ids
from tokenizer.bytestring import read_only
from tokenizer.pair_queue import COUNT, Pairs, Queue, join_pair, new_pairs, new_queue, pair_slot, push

Int64 = npt.NDArray[np.int64]

OUTSIDE, INSIDE = -1, -2
_INT32_CELLS = 2**31 - 1


class Cells(NamedTuple):
    """`ids`, `pieces`: int32 per cell, token id and number of the piece; `counts`: int64 per piece."""

    ids: npt.NDArray[np.int32]
    pieces: npt.NDArray[np.int32]
    counts: Int64


class Occurrences(NamedTuple):
    """List e is positions[spans[e, 0]:spans[e, 0] + spans[e, 1]]; `used`: lists and positions in use.

    `positions` is int32, or int64 if there are 2^31 cells or more.
    """

    positions: npt.NDArray[Any]
    spans: Int64
    used: Int64


@kernel
def _lay_out(data, offsets, chosen, ids_of_bytes, ids, pieces):
    cell = 0
    ids[0] = OUTSIDE
    pieces[0] = 0
    for piece in range(chosen.size):
        for place in range(offsets[chosen[piece]], offsets[chosen[piece] + 1]):
            cell += 1
            ids[cell] = ids_of_bytes[data[place]]
            pieces[cell] = piece
        cell += 1
        ids[cell] = OUTSIDE
        pieces[cell] = piece


def pieces_with_pairs(offsets: Int64, counts: Int64) -> Int64:
    """Numbers of the pieces that can hold a pair and have a positive count."""
    return np.flatnonzero((np.diff(offsets) > 1) & (counts > 0))


def lay_out(data: npt.NDArray[np.uint8], offsets: Int64, counts: Int64) -> Cells:
    """Cells of all pieces data[offsets[i]:offsets[i + 1]] that can hold a pair and have a positive count."""
    lengths = np.diff(offsets)
    chosen = pieces_with_pairs(offsets, counts)
    size = int((lengths[chosen] + 1).sum()) + 1
    ids, pieces = np.empty(size, np.int32), np.empty(size, np.int32)
    _lay_out(read_only(data), read_only(offsets), chosen, byte_ids(), ids, pieces)
    return Cells(ids, pieces, counts[chosen])


@kernel
def _count_byte_pairs(ids, pieces, counts, totals, numbers):
    for cell in range(1, ids.size - 1):
        left, right = ids[cell], ids[cell + 1]
        if left >= 0 and right >= 0:
            totals[left, right] += counts[pieces[cell]]
            numbers[left, right] += 1


@kernel
def _start_lists(totals, numbers, pairs, queue, occurrences, place_of):
    for left in range(totals.shape[0]):
        for right in range(totals.shape[1]):
            if numbers[left, right] > 0:
                entry, place = occurrences.used
                slot = pair_slot(pairs.rows, pairs.used, join_pair(left, right))
                pairs.rows[slot, COUNT] = totals[left, right]
                push(queue.rows, queue.used, totals[left, right], join_pair(left, right), entry)
                occurrences.spans[entry, 0] = place
                occurrences.spans[entry, 1] = numbers[left, right]
                place_of[left, right] = place
                occurrences.used[0] = entry + 1
                occurrences.used[1] = place + numbers[left, right]


@kernel
def _note_positions(ids, positions, place_of):
    for cell in range(1, ids.size - 1):
        left, right = ids[cell], ids[cell + 1]
        if left >= 0 and right >= 0:
            positions[place_of[left, right]] = cell
            place_of[left, right] += 1


Candidates = tuple[Pairs, Queue, Occurrences]


def first_pairs(cells: Cells) -> Candidates:
    """All pairs of bytes in the cells, counted, queued and with their positions in ascending order."""
    totals = np.zeros((FIRST_MERGE_ID, FIRST_MERGE_ID), np.int64)
    numbers, place_of = np.zeros_like(totals), np.zeros_like(totals)
    _count_byte_pairs(*cells, totals, numbers)
    distinct, positions = int(np.count_nonzero(numbers)), int(numbers.sum())
    pairs, queue, occurrences = room_for(distinct, positions, cells.ids.size)
    _start_lists(totals, numbers, pairs, queue, occurrences, place_of)
    _note_positions(cells.ids, occurrences.positions, place_of)
    return pairs, queue, occurrences


def room_for(distinct: int, positions: int, cells: int) -> Candidates:
    """Empty tables for that many distinct pairs at that many positions, with room to grow."""
    size = 1 << 18
    while size < 4 * distinct:
        size *= 2
    kind = np.int32 if cells <= _INT32_CELLS else np.int64
    occurrences = Occurrences(
        np.empty(positions + positions // 2 + 1024, kind),
        np.empty((distinct + (1 << 16), 2), np.int64),
        np.zeros(2, np.int64),
    )
    return new_pairs(size), new_queue(distinct + (1 << 16)), occurrences
