# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The merges of a vocabulary as a table for encoding: pair of ids -> rank and new id.

A pair is left id << 32 | right id; what it becomes is rank << 32 | new id, so the smallest value is the merge
to make first. Pairs of bytes, which every piece begins with, have a direct table of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel

Int64 = npt.NDArray[np.int64]

NO_MERGE = np.int64(2**62)
_EMPTY = -1


class MergeTable(NamedTuple):
    """`byte_ids`: int32 (256,); `byte_pairs`: int64 (65536,), value by left byte << 8 | right byte; `rows`: (n,
    2) int64, open addressing, pair and value."""

    byte_ids: npt.NDArray[np.int32]
    byte_pairs: Int64
    rows: Int64


@inlined
def find_merge(rows, left, right):
    """rank << 32 | new id of a pair of ids, NO_MERGE if they do not merge."""
    pair = (np.int64(left) << 32) | np.int64(right)
    mask = rows.shape[0] - 1
    slot = np.int64(mix(np.uint64(pair)) & np.uint64(mask))
    while rows[slot, 0] != pair and rows[slot, 0] != _EMPTY:
        slot = (slot + 1) & mask
    return rows[slot, 1]


@kernel
def _fill(rows, merges, byte_pairs, byte_ids):
    mask = rows.shape[0] - 1
    for rank in range(merges.shape[0]):
        pair = (merges[rank, 0] << 32) | merges[rank, 1]
        slot = np.int64(mix(np.uint64(pair)) & np.uint64(mask))
        while rows[slot, 0] != pair and rows[slot, 0] != _EMPTY:
            slot = (slot + 1) & mask
        rows[slot, 0] = pair  # given twice, the later rank counts, as in Hugging Face's reader
        rows[slot, 1] = (np.int64(rank) << 32) | merges[rank, 2]
    for left in range(256):
        for right in range(256):
            byte_pairs[left << 8 | right] = find_merge(rows, byte_ids[left], byte_ids[right])


def make_merge_table(byte_ids: npt.NDArray[np.int32], merges: Int64) -> MergeTable:
    """The table of merges (n, 3): left id, right id, new id, in order of rank."""
    size = 1024
    while size < 2 * len(merges):
        size *= 2
    rows = np.empty((size, 2), np.int64)
    rows[:, 0], rows[:, 1] = _EMPTY, NO_MERGE
    byte_pairs = np.empty(1 << 16, np.int64)
    _fill(rows, merges, byte_pairs, byte_ids)
    return MergeTable(byte_ids, byte_pairs, rows)
