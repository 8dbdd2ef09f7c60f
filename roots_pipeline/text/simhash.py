# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""SimHash (Charikar 2002) as ROOTS used it: 64 bits, each the majority of that bit over the hashes of all windows.

A window is a number of characters, or of words between single spaces; its hash is the first eight bytes of the MD5 of
its UTF-8. Characters of the Unicode category P are left out before. In: Arrow buffers of lower-cased text. Out: one
uint64 a text; bits without a majority, and texts without a window, are 0.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.md5 import LANES, ONE_BLOCK, WORK, hash_lanes, hash_long, load_message
from roots_pipeline.text.memory import allocating, inlined, kernel

CHARACTERS = 0
WORDS = 1
_SPACE = 32
_FULL = 255  # hashes after which the byte-wide counts are added up
_EIGHT, _BYTE = np.uint64(8), np.uint64(255)
# For each value of a byte, its bits as eight counts of one byte each.
_BITS = np.array([sum((value >> bit & 1) << (8 * bit) for bit in range(8)) for value in range(256)], np.uint64)


def simhash_texts(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], units: npt.NDArray[np.uint8], window: int,
    keep_punctuation: bool = False, drop_last: bool = False,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The SimHash of each text, and how many windows it was taken of.

    `units[i]` says what the windows of text i are made of. A text shorter than a window is one window; with `drop_last`
    (as published) the last window does not count, so a text of up to `window` units has none.
    """
    out = np.zeros(len(offsets) - 1, np.uint64)
    counts = np.zeros(len(offsets) - 1, np.int64)
    table = np.zeros(0x110000, np.bool_) if keep_punctuation else _punctuation()
    _simhash(data, offsets, units, window, table, drop_last, out, counts)
    return out, counts


@lru_cache(maxsize=1)
def _punctuation() -> npt.NDArray[np.bool_]:
    table: npt.NDArray[Any] = np.zeros(0x110000, np.bool_)
    for code in range(0x1FFFF):
        table[code] = unicodedata.category(chr(code))[0] == "P"
    return table


@allocating
def _simhash(data, offsets, units, window, punctuation, drop_last, out, counts):
    longest = 0
    for text in range(out.size):
        longest = max(longest, offsets[text + 1] - offsets[text])
    left = np.empty(longest, np.uint8)
    work, hashes = np.zeros(WORK, np.uint32), np.empty(LANES, np.uint64)
    votes, sums = np.zeros(8, np.uint64), np.zeros(64, np.int64)
    for text in range(out.size):
        size = _strip(data, offsets[text], offsets[text + 1], punctuation, left)
        sums[:] = 0
        counts[text] = _vote(left, size, units[text], window, drop_last, work, hashes, votes, sums)
        for bit in range(64):
            if 2 * sums[bit] > counts[text]:
                out[text] |= np.uint64(1) << np.uint64(bit)


@kernel
def _strip(data, i, end, punctuation, left):
    """Copy a text without its punctuation; returns its new size."""
    size = 0
    while i < end:
        code, length = decode(data, i, end)
        if not punctuation[code]:
            for k in range(length):
                left[size + k] = data[i + k]
            size += length
        i += length
    return size


@kernel
def _vote(text, size, unit, window, drop_last, work, hashes, votes, sums):
    """Count the set bits of the hashes of all windows of `text[:size]` in `sums`; returns the number of windows."""
    # `first` and `last` are where the first and the last unit of a window begin.
    last = np.int64(0)
    for _ in range(window - 1):
        last = _next_unit(text, last, size, unit)
        if last > size:
            break
    if last > size or (size == 0 and unit == CHARACTERS):
        if drop_last or size == 0:
            return 0
        hashes[0] = hash_long(work, text, 0, size)
        _add(hashes, 1, votes)
        _flush(votes, sums)
        return 1
    first, windows, lanes, added = np.int64(0), 0, 0, 0
    while True:
        after = _next_unit(text, last, size, unit)
        stop = after if unit == CHARACTERS else after - 1
        if after > size or (unit == CHARACTERS and after == size):
            # the last window
            stop = size
            if drop_last:
                break
        if stop - first <= ONE_BLOCK:
            load_message(work, lanes, text, first, stop)
            lanes += 1
            if lanes == LANES:
                hash_lanes(work, LANES, hashes)
                _add(hashes, LANES, votes)
                added += LANES
                lanes = 0
        else:
            # A long message uses the first lane, so what is loaded goes first.
            hash_lanes(work, lanes, hashes)
            _add(hashes, lanes, votes)
            hashes[0] = hash_long(work, text, first, stop)
            _add(hashes, 1, votes)
            added += lanes + 1
            lanes = 0
        windows += 1
        if added > _FULL - 2 * LANES:
            _flush(votes, sums)
            added = 0
        if stop == size:
            break
        first, last = _next_unit(text, first, size, unit), after
    hash_lanes(work, lanes, hashes)
    _add(hashes, lanes, votes)
    _flush(votes, sums)
    return windows


@inlined
def _next_unit(text, i, size, unit):
    """Where the unit after the one at i begins; past the end for the last word."""
    if unit == CHARACTERS:
        if i >= size:
            return size + 1
        _, length = decode(text, i, size)
        return i + length
    while i < size and text[i] != _SPACE:
        i += 1
    return i + 1


@inlined
def _add(hashes, number, votes):
    for k in range(number):
        value = hashes[k]
        for byte in range(8):
            votes[byte] += _BITS[value & _BYTE]
            value >>= _EIGHT


@inlined
def _flush(votes, sums):
    for byte in range(8):
        for bit in range(8):
            sums[8 * byte + bit] += np.int64((votes[byte] >> np.uint64(8 * bit)) & _BYTE)
        votes[byte] = 0
