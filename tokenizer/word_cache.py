# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Pieces that were encoded before, and their ids: one cache line of memory each.

    words 0-3   the piece, zeros behind it     word 4   length, number of ids, where they begin
    words 5-7   the ids, if there are at most six; more of them lie in a pool behind the lines

Looking up a piece is one wait for memory, which `prefetch` lets many pieces share. Lines are found by open addressing
and are never taken back; `is_full` says when to clear everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel, load_eight
from tokenizer.machine import aligned_zeros

CACHED_LENGTH = 32  # bytes; longer pieces hardly come again
KEY_WORDS = 4
LINE_WORDS = 8
_META, _IDS = 4, 5  # words of a line
_INLINE = 6
_LINES, _POOLED = 0, 1  # places in `used`
_NUMBER_SHIFT, _PLACE_SHIFT = np.uint64(8), np.uint64(16)
_BYTE = np.uint64(0xFF)
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], np.uint64
)  # odd, nothing else


def _masks() -> npt.NDArray[np.uint64]:
    masks = np.zeros((CACHED_LENGTH + 1, KEY_WORDS), np.uint64)
    for length in range(CACHED_LENGTH + 1):
        for word in range(KEY_WORDS):
            masks[length, word] = (1 << 8 * min(max(length - 8 * word, 0), 8)) - 1
    return masks


_MASKS = _masks()


class WordCache(NamedTuple):
    """`words`: uint64, the lines and the pool behind them; `ids`: int32, the same memory; `used`: int64, lines and ids
    of the pool in use; `bits`: there are 2 ** bits lines."""

    words: npt.NDArray[np.uint64]
    ids: npt.NDArray[np.int32]
    used: npt.NDArray[np.int64]
    bits: int


def new_cache(bits: int, pool: int) -> WordCache:
    """An empty cache of 2 ** `bits` lines and `pool` ids, an even number."""
    words = aligned_zeros((LINE_WORDS << bits) + pool // 2)
    return WordCache(words, words.view(np.int32), np.zeros(2, np.int64), bits)


@kernel
def clear_cache(cache):
    """Forget everything."""
    cache.words[:] = 0
    cache.used[:] = 0


@inlined
def is_full(cache, pieces, ids):
    """Whether that many new pieces, of that many ids together, might not fit."""
    room = cache.ids.size - ((2 * LINE_WORDS) << cache.bits)
    return 10 * (cache.used[_LINES] + pieces) > 7 << cache.bits or cache.used[_POOLED] + ids > room


@inlined
def load_key(cache, data, start, length, key, row):
    """Write a piece of at most CACHED_LENGTH bytes to key[row:row + 4]; returns the line where its search begins."""
    if start + CACHED_LENGTH <= data.size:
        for word in range(KEY_WORDS):
            key[row + word] = load_eight(data, start + 8 * word) & _MASKS[length, word]
    else:
        for word in range(KEY_WORDS):
            key[row + word] = 0
        for index in range(length):
            key[row + (index >> 3)] |= np.uint64(data[start + index]) << np.uint64(8 * (index & 7))
    total = np.uint64(length) * _FACTORS[0]
    for word in range(KEY_WORDS):
        total += key[row + word] * _FACTORS[word]
    return np.int64(mix(total) >> np.uint64(64 - cache.bits))


@inlined
def find_line(cache, home, key, row, length):
    """The line of a piece, or -1 - line if it is new: then the line is now taken, and its ids are still to come."""
    words = cache.words
    line = home
    while True:
        place = line * LINE_WORDS
        meta = words[place + _META]
        if meta == 0:
            break
        differ = (meta & _BYTE) ^ np.uint64(length)
        for word in range(KEY_WORDS):
            differ |= words[place + word] ^ key[row + word]
        if differ == 0:
            return line
        line = (line + 1) & ((1 << cache.bits) - 1)
    for word in range(KEY_WORDS):
        words[place + word] = key[row + word]
    words[place + _META] = np.uint64(length)
    cache.used[_LINES] += 1
    return -1 - line


@inlined
def place_for(cache, line, number):
    """Where in `cache.ids` the ids of a new line go, and note it."""
    place = 2 * (line * LINE_WORDS + _IDS)
    if number > _INLINE:
        place = ((2 * LINE_WORDS) << cache.bits) + cache.used[_POOLED]
        cache.used[_POOLED] += number
    meta = line * LINE_WORDS + _META
    cache.words[meta] |= (np.uint64(place) << _PLACE_SHIFT) | (np.uint64(number) << _NUMBER_SHIFT)
    return place


@inlined
def ids_of(cache, line):
    """Where in `cache.ids` the ids of a line begin, and how many there are."""
    meta = cache.words[line * LINE_WORDS + _META]
    return np.int64(meta >> _PLACE_SHIFT), np.int64((meta >> _NUMBER_SHIFT) & _BYTE)
