# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The merges of a vocabulary as a table for encoding: pair of ids -> rank; the lowest rank is the merge to make first.

Encoding spends its time waiting for memory, so the table is small: a pair and its rank share one int64, and a filter of
one bit for each hash, which the cache of a core can hold, answers most questions about pairs that do not merge (the
usual answer) without the table. Pairs of bytes, which every piece begins with, have a direct table of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

NO_MERGE = np.int32(2**31 - 1)
_EMPTY = -1
_BITS = 21  # of an id and of a rank: three of them fit into an int64
LARGEST_ID = (1 << _BITS) - 1
_RANK = np.int64(LARGEST_ID)
_FILTER_BITS = 16  # a merge, at least: about one pair in 16 that does not merge is looked up in vain


class MergeTable(NamedTuple):
    """`byte_ids`: int32 (256,); `byte_ranks`: int32 (65536,), rank by left byte << 8 | right byte; `rows`: int64, open
    addressing, pair << 21 | rank; `known`: uint64, the filter; `made`: int32, the new id by rank."""

    byte_ids: Int32
    byte_ranks: Int32
    rows: Int64
    known: npt.NDArray[np.uint64]
    made: Int32


@inlined
def find_rank(rows, known, left, right):
    """The rank at which two ids merge, NO_MERGE if they do not."""
    pair = (np.int64(left) << _BITS) | np.int64(right)
    digest = mix(np.uint64(pair))
    bit = (digest >> np.uint64(32)) & np.uint64(64 * known.size - 1)
    if (known[np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & np.uint64(1) == 0:
        return NO_MERGE
    mask = rows.size - 1
    slot = np.int64(digest) & mask
    while rows[slot] != _EMPTY:
        if rows[slot] >> _BITS == pair:
            return np.int32(rows[slot] & _RANK)
        slot = (slot + 1) & mask
    return NO_MERGE


@kernel
def _fill(rows, known, merges, byte_ranks, byte_ids):
    mask = rows.size - 1
    for rank in range(merges.shape[0]):
        pair = (merges[rank, 0] << _BITS) | merges[rank, 1]
        digest = mix(np.uint64(pair))
        bit = (digest >> np.uint64(32)) & np.uint64(64 * known.size - 1)
        known[np.int64(bit >> np.uint64(6))] |= np.uint64(1) << (bit & np.uint64(63))
        slot = np.int64(digest) & mask
        while rows[slot] != _EMPTY and rows[slot] >> _BITS != pair:
            slot = (slot + 1) & mask
        rows[slot] = (pair << _BITS) | rank  # given twice, the later rank counts, as in Hugging Face's reader
    for left in range(256):
        for right in range(256):
            byte_ranks[left << 8 | right] = find_rank(rows, known, byte_ids[left], byte_ids[right])


def make_merge_table(byte_ids: Int32, merges: Int64) -> MergeTable:
    """The table of merges (n, 3): left id, right id, new id, in order of rank. Raises TokenizerError for more tokens
    than it can number."""
    largest = max(len(merges), int(merges.max(initial=0)), int(byte_ids.max()))
    if largest > LARGEST_ID:
        raise TokenizerError(f"id or merge {largest:,} is beyond the {LARGEST_ID + 1:,} that encoding can number.")
    size = 1024
    while size < 2 * len(merges):
        size *= 2
    rows, known = np.full(size, _EMPTY, np.int64), np.zeros(size * _FILTER_BITS // 2 // 64, np.uint64)
    byte_ranks = np.empty(1 << 16, np.int32)
    _fill(rows, known, merges, byte_ranks, byte_ids)
    return MergeTable(byte_ids, byte_ranks, rows, known, merges[:, 2].astype(np.int32))
