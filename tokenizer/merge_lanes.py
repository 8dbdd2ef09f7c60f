# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Apply merges to many short pieces at once: always the one of lowest rank, the leftmost first among equals.

A merge needs two looks into the table of merges, which lies in memory that takes long to answer. So several pieces are
merged in turns, each in a lane of its own: a lane asks for its rows, and reads them when its turn comes again.

A lane holds 64 cells, one a byte and one more at each end for what merges with nothing. A token stands in the cell of
its first byte, linked with its neighbours; the cell's key is rank << 6 | cell of the merge with the token behind it.
The smallest key is the merge to make.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined
from tokenizer.machine import VECTOR, at, put, smallest
from tokenizer.merge_table import NO_MERGE, OUTSIDE, ask_for_rank, new_id, read_rank

LANES = 8
_CELLS = 64
_CELL_BITS = 6
LANE_BYTES = _CELLS - 2  # of a piece, at most
_NO_KEY = np.int32(2**31 - 1)
_LENGTH, _FRONT, _FRONT_PAIR, _FRONT_BUCKET, _HERE, _HERE_PAIR, _HERE_BUCKET, _STATE = range(8)

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class Lanes(NamedTuple):
    """`keys`, `ids`, `following`, `before`: int32 (LANES * 64,); `state`: int64 (LANES * 7,), the length of the piece
    and the two pairs whose ranks are asked for; `items`: int64 (LANES,), which piece each works on."""

    keys: Int32
    ids: Int32
    following: Int32
    before: Int32
    state: Int64
    items: Int64


def new_lanes() -> Lanes:
    """Lanes that hold nothing."""
    keys, ids, following, before = np.zeros((4, LANES * _CELLS), np.int32)
    return Lanes(keys, ids, following, before, np.zeros(LANES * _STATE, np.int64), np.zeros(LANES, np.int64))


@inlined
def start_lane(lanes, lane, table, data, start, length):
    """Fill a lane with the bytes of a piece."""
    keys, ids, following, before, state, _ = lanes
    base = lane * _CELLS
    byte_ids, byte_ranks = table.byte_ids, table.byte_ranks
    put(ids, base, np.int32(OUTSIDE))
    put(keys, base, _NO_KEY)
    byte = np.int64(at(data, start))
    for cell in range(1, length):
        behind = np.int64(at(data, start + cell))
        put(ids, base + cell, at(byte_ids, byte))
        put(keys, base + cell, np.int32((np.int64(at(byte_ranks, byte << 8 | behind)) << _CELL_BITS) | cell))
        put(following, base + cell, np.int32(cell + 1))
        put(before, base + cell, np.int32(cell - 1))
        byte = behind
    put(ids, base + length, at(byte_ids, byte))
    put(following, base + length, np.int32(length + 1))
    put(before, base + length, np.int32(length - 1))
    put(ids, base + length + 1, np.int32(OUTSIDE))
    for cell in range(length, (length + VECTOR) & ~(VECTOR - 1)):
        put(keys, base + cell, _NO_KEY)
    put(state, lane * _STATE + _LENGTH, np.int64(length))
    put(state, lane * _STATE + _HERE, np.int64(0))


@inlined
def note_ranks(lanes, lane, table):
    """Read the ranks that the last merge in a lane asked for."""
    base, row = lane * _CELLS, lane * _STATE
    state = lanes.state
    here = at(state, row + _HERE)
    if here > 0:
        rank = np.int64(read_rank(table, at(state, row + _HERE_PAIR), at(state, row + _HERE_BUCKET)))
        put(lanes.keys, base + here, np.int32((rank << _CELL_BITS) | here))
        front = at(state, row + _FRONT)
        rank = np.int64(read_rank(table, at(state, row + _FRONT_PAIR), at(state, row + _FRONT_BUCKET)))
        put(lanes.keys, base + front, np.int32((rank << _CELL_BITS) | front))


@inlined
def step_lane(lanes, lane, table):
    """Make one merge in a lane, whose keys are up to date; returns False if there is none left to make."""
    keys, ids, following, before, state, _ = lanes
    base, row = lane * _CELLS, lane * _STATE
    best = smallest(keys, base)
    if at(state, row + _LENGTH) >= VECTOR:
        best = min(best, smallest(keys, base + VECTOR))
    rank = np.int64(best >> _CELL_BITS)
    if rank >= NO_MERGE:
        return False
    here = np.int64(best & (_CELLS - 1))
    gone = np.int64(at(following, base + here))
    behind = np.int64(at(following, base + gone))
    front = np.int64(at(before, base + here))
    made = new_id(table, rank)
    put(keys, base + gone, _NO_KEY)
    put(ids, base + here, made)
    put(following, base + here, np.int32(behind))
    put(before, base + behind, np.int32(here))
    pair, bucket = ask_for_rank(table, made, at(ids, base + behind))
    put(state, row + _HERE, here)
    put(state, row + _HERE_PAIR, pair)
    put(state, row + _HERE_BUCKET, bucket)
    pair, bucket = ask_for_rank(table, at(ids, base + front), made)
    put(state, row + _FRONT, front)
    put(state, row + _FRONT_PAIR, pair)
    put(state, row + _FRONT_BUCKET, bucket)
    return True


@inlined
def count_lane(lanes, lane):
    """How many tokens a lane holds."""
    base, length = lane * _CELLS, at(lanes.state, lane * _STATE + _LENGTH)
    cell, number = np.int64(1), 0
    while cell <= length:
        number += 1
        cell = np.int64(at(lanes.following, base + cell))
    return number


@inlined
def empty_lane(lanes, lane, out, place):
    """Write a lane's tokens to out[place:]."""
    base, length = lane * _CELLS, at(lanes.state, lane * _STATE + _LENGTH)
    cell = np.int64(1)
    while cell <= length:
        put(out, place, at(lanes.ids, base + cell))
        place += 1
        cell = np.int64(at(lanes.following, base + cell))
