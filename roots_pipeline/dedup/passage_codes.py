# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Which anchors occur more than once, told with four bytes an anchor.

Of an anchor's hash the first 40 bits meet: the first eight say which of 256 chunks it belongs to, the other 32 are
sent. A batch of documents sends one list of such codes a chunk, and hears back one bit for each. That two anchors share
a code by chance costs work later on, but changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import allocating, kernel

Numbers = npt.NDArray[np.int64]

CHUNKS = 256
CHUNK_SHIFT, _CODE_SHIFT = np.uint64(56), np.uint64(24)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio


class Codes(NamedTuple):
    """The codes of some anchors, chunk by chunk: those of chunk c are `codes[bounds[c]:bounds[c + 1]]`."""

    codes: npt.NDArray[np.uint32]
    bounds: Numbers
    order: Numbers  # the anchor of each code


def encode(keys: npt.NDArray[np.uint64]) -> Codes:
    """The codes of anchors with these hashes; within a chunk in the order of the anchors."""
    bounds = np.zeros(CHUNKS + 1, np.int64)
    codes, order = np.empty(len(keys), np.uint32), np.empty(len(keys), np.int64)
    _encode(keys, bounds, codes, order)
    return Codes(codes, bounds, order)


@kernel
def _encode(keys, bounds, codes, order):
    for k in range(keys.size):
        bounds[np.int64(keys[k] >> CHUNK_SHIFT) + 1] += 1
    for chunk in range(CHUNKS):
        bounds[chunk + 1] += bounds[chunk]
    for k in range(keys.size):
        chunk = np.int64(keys[k] >> CHUNK_SHIFT)
        place = bounds[chunk]
        codes[place], order[place] = np.uint32((keys[k] >> _CODE_SHIFT) & np.uint64(0xFFFFFFFF)), k
        bounds[chunk] += 1
    for chunk in range(CHUNKS, 0, -1):  # each bound has moved to the end of its chunk
        bounds[chunk] = bounds[chunk - 1]
    bounds[0] = 0


def repeated(codes: npt.NDArray[np.uint32], bounds: Numbers) -> npt.NDArray[np.bool_]:
    """Which codes occur more than once within their chunk, `codes[bounds[c]:bounds[c + 1]]`."""
    mask = np.empty(len(codes), np.bool_)
    _mark_repeated(codes, bounds, mask)
    return mask


@allocating
def _mark_repeated(codes, bounds, mask):
    largest = 0
    for chunk in range(bounds.size - 1):
        largest = max(largest, bounds[chunk + 1] - bounds[chunk])
    bits = 4
    while (1 << bits) < 2 * largest:
        bits += 1
    table, twice = np.empty(1 << bits, np.uint32), np.empty(1 << bits, np.bool_)
    slots = np.empty(largest, np.int64)
    for chunk in range(bounds.size - 1):
        begin, end = bounds[chunk], bounds[chunk + 1]
        bits = 4
        while (1 << bits) < 2 * (end - begin):
            bits += 1
        table[: 1 << bits] = 0
        twice[: 1 << bits] = False
        _enter(codes, begin, end, bits, table, twice, slots)
        for k in range(begin, end):
            mask[k] = twice[slots[k - begin]]


@kernel
def _enter(codes, begin, end, bits, table, twice, slots):
    last = (1 << bits) - 1
    for k in range(begin, end):
        code = max(codes[k], np.uint32(1))  # 0 stands for a free slot
        slot = np.int64((np.uint64(code) * _SPREAD) >> np.uint64(64 - bits))
        while table[slot] != 0 and table[slot] != code:
            slot = (slot + 1) & last
        twice[slot] = table[slot] == code
        table[slot] = code
        slots[k - begin] = slot
