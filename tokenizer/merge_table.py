# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The merges of a vocabulary as a table for encoding: pair of ids -> rank; the lowest rank is the merge to make first.

Encoding spends its time waiting for memory and guessing what comes next, so a look-up is one cache line and no branch:
a pair and its rank share one int64, and the rows of a bucket are compared all at once. Pairs of bytes, which every
piece begins with, have a direct table of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel
from tokenizer.machine import LINE, aligned_zeros, at, lookup, prefetch

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

NO_MERGE = np.int32((1 << 24) - 1)  # more than any rank
_EMPTY = -1
_BITS = 21  # of an id and of a rank: three of them fit into an int64
OUTSIDE = (1 << _BITS) - 1  # an id that merges with none
LARGEST_ID = OUTSIDE - 1


class MergeTable(NamedTuple):
    """`byte_ids`: int32 (256,); `byte_ranks`: int32 (65536,), rank by left byte << 8 | right byte; `rows`: int64,
    buckets of LINE rows, pair << 21 | rank; `made`: int32, the new id by rank; `first`: if new ids count up with rank,
    the first of them, else -1."""

    byte_ids: Int32
    byte_ranks: Int32
    rows: Int64
    made: Int32
    first: int


@inlined
def ask_for_rank(table, left, right):
    """Have the bucket of a pair fetched; returns the pair and the bucket as `read_rank` wants them."""
    pair = (np.int64(left) << _BITS) | np.int64(right)
    bucket = np.int64(mix(np.uint64(pair))) & (table.rows.size - LINE)
    prefetch(table.rows, bucket)
    return pair, bucket


@inlined
def read_rank(table, pair, bucket):
    """The rank at which a pair merges, NO_MERGE if it does not."""
    rank = lookup(table.rows, bucket, pair, _BITS, NO_MERGE)
    while rank == NO_MERGE and at(table.rows, bucket + LINE - 1) != _EMPTY:
        bucket = (bucket + LINE) & (table.rows.size - LINE)
        rank = lookup(table.rows, bucket, pair, _BITS, NO_MERGE)
    return np.int32(rank)


@inlined
def find_rank(table, left, right):
    """The rank at which two ids merge, NO_MERGE if they do not."""
    pair, bucket = ask_for_rank(table, left, right)
    return read_rank(table, pair, bucket)


@inlined
def new_id(table, rank):
    """The id that the merge of this rank makes."""
    if table.first >= 0:
        return np.int32(table.first + rank)
    return table.made[rank]


@kernel
def _fill(table, merges):
    rows = table.rows
    for rank in range(merges.shape[0]):
        pair, place = ask_for_rank(table, merges[rank, 0], merges[rank, 1])
        while rows[place] != _EMPTY and rows[place] >> _BITS != pair:
            place = (place + 1) & (rows.size - 1)
        rows[place] = (pair << _BITS) | rank  # given twice, the later rank counts, as in Hugging Face's reader
    for left in range(256):
        for right in range(256):
            rank = find_rank(table, table.byte_ids[left], table.byte_ids[right])
            table.byte_ranks[left << 8 | right] = rank


def make_merge_table(byte_ids: Int32, merges: Int64) -> MergeTable:
    """The table of merges (n, 3): left id, right id, new id, in order of rank. Raises TokenizerError for more tokens
    than it can number."""
    largest = max(len(merges), int(merges.max(initial=0)), int(byte_ids.max()))
    if largest > LARGEST_ID:
        raise TokenizerError(f"id or merge {largest:,} is beyond the {LARGEST_ID + 1:,} that encoding can number.")
    size = 1024
    while size < 2 * len(merges):
        size *= 2
    rows = aligned_zeros(size).view(np.int64)
    rows[:] = _EMPTY
    made = merges[:, 2].astype(np.int32)
    first = int(made[0]) if len(made) and np.array_equal(made, made[0] + np.arange(len(made))) else -1
    table = MergeTable(byte_ids, np.empty(1 << 16, np.int32), rows, made, first)
    _fill(table, merges)
    return table
