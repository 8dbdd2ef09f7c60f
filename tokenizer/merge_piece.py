# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Apply merges to one long piece (text without spaces, runs of one character): always the merge of lowest rank, the
leftmost first among equals.

A linked list of tokens and a heap of (rank, position): a piece of n bytes takes O(n log n). Short pieces are faster in
`merge_lanes`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined
from tokenizer.merge_table import NO_MERGE, find_rank, new_id

_LOW_HALF = np.int64(0xFFFFFFFF)

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class Scratch(NamedTuple):
    """Room for one long piece of n bytes: `ids`, `following`, `before` int32 (n,), linked by position; `ranks` int32
    (n,), at which the token at a position merges with the next one; `heap` int64 (2 n,), rank << 32 | position."""

    ids: Int32
    following: Int32
    before: Int32
    ranks: Int32
    heap: Int64


def new_scratch(length: int) -> Scratch:
    """Room for pieces of up to `length` bytes: 32 bytes for each.

    A merge takes one entry from the heap and adds at most two, and n bytes merge less than n times: 2 n entries
    suffice.
    """
    links = np.empty((4, length), np.int32)
    return Scratch(links[0], links[1], links[2], links[3], np.empty(2 * length, np.int64))


@inlined
def _push(heap, size, key):
    index = size
    while index > 0 and heap[(index - 1) >> 1] > key:
        heap[index] = heap[(index - 1) >> 1]
        index = (index - 1) >> 1
    heap[index] = key


@inlined
def _pop(heap, size):
    """Remove the smallest of `size` keys; the heap then holds size - 1."""
    last = size - 1
    key = heap[last]
    index = 0
    child = 1
    while child < last:
        if child + 1 < last and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[index] = heap[child]
        index = child
        child = 2 * index + 1
    heap[index] = key


@inlined
def merge_long(table, data, start, length, scratch, out, place):
    """Token ids of data[start:start + length] into out[place:]; returns the place behind them.

    `scratch` is a `Scratch` for `length` bytes or more.
    """
    byte_ids, byte_ranks = table.byte_ids, table.byte_ranks
    ids, following, before, ranks, heap = scratch
    size = 0
    for index in range(length):
        ids[index] = byte_ids[data[start + index]]
        following[index] = index + 1
        before[index] = index - 1
        ranks[index] = NO_MERGE
        if index + 1 < length:
            ranks[index] = byte_ranks[(np.int64(data[start + index]) << 8) | data[start + index + 1]]
            if ranks[index] != NO_MERGE:
                _push(heap, size, (np.int64(ranks[index]) << 32) | index)
                size += 1
    while size > 0:
        key = heap[0]
        _pop(heap, size)
        size -= 1
        here = key & _LOW_HALF
        if ranks[here] != key >> 32:
            continue  # one of the two tokens has changed since
        gone = np.int64(following[here])
        behind = np.int64(following[gone])
        ids[here] = new_id(table, ranks[here])
        following[here] = behind
        ranks[gone] = NO_MERGE
        ranks[here] = NO_MERGE
        if behind < length:
            before[behind] = here
            ranks[here] = find_rank(table, ids[here], ids[behind])
            if ranks[here] != NO_MERGE:
                _push(heap, size, (np.int64(ranks[here]) << 32) | here)
                size += 1
        front = np.int64(before[here])
        if front >= 0:
            ranks[front] = find_rank(table, ids[front], ids[here])
            if ranks[front] != NO_MERGE:
                _push(heap, size, (np.int64(ranks[front]) << 32) | front)
                size += 1
    index = 0
    while index < length:
        out[place] = ids[index]
        place += 1
        index = np.int64(following[index])
    return place
