# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""What a scan of texts looks for: n-grams of evaluation items in a hash table, behind a filter that fits a cache.

A run of words has the hash  mix(sum of word hash times BASE to the power of the words behind it)  modulo 2^64, so that
any run that ends here follows from two sums over the text: the one up to here and the one up to its first word. Two
different runs share a hash with a chance of 5e-20.

Nearly all text holds nothing that is looked for, so the scan asks seldom: once every `stride` words, whether the last
`size` words occur anywhere in an item. As size + stride - 1 is the length of the shortest run that is looked for, each
such run contains one of these questions entirely. Only where the answer is yes are runs looked up. The answer comes
from a Bloom filter whose bits for one run lie in one word of memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

# Odd; 5 modulo 8 has the longest period.
_BASE = 0xD1342543DE82EF95
BASE = np.uint64(_BASE)
# What is added to runs of words that are no n-grams, so that each kind has keys of its own.
ANYWHERE, BOUNDED, WHOLE = np.uint64(0x9AE16A3B2F90404F), np.uint64(0xC3A5C85C97CB3127), np.uint64(0xB492B66FBE98F273)
ABSENT = -(1 << 31)
_BITS_AN_ENTRY, _SMALLEST = 16, 64
_LOW_SIX, _SIX, _TWELVE, _ONE = np.uint64(63), np.uint64(6), np.uint64(12), np.uint64(1)


class Anchors(NamedTuple):
    """What is asked for a kind of run: whether the last `size` words, at every `stride`, may be part of one."""

    size: int
    stride: int
    filter: Any  # uint64


class Shorts(NamedTuple):
    """Items that are looked for as a whole, found by their last words, of which each kind has a fixed number."""

    anywhere: int  # words of the tail of items that may be anywhere; 0: there are none
    bounded: int  # the same of items that must lie between borders
    lengths: Any  # int64[items], in words
    hashes: Any  # uint64[items], with the kind added
    tail_first: Any  # int64[tails + 1]: the items with a tail are tail_items[tail_first[t]:tail_first[t + 1]]
    tail_items: Any  # int64


class Tables(NamedTuple):
    """Lengths are in words. The table maps the hash of an n-gram to its id (>= 0), that of a tail t to -1 - t."""

    size: int  # of n-grams
    whole: bool  # texts that are shorter than an n-gram are looked up as a whole
    grams: Anchors  # of n-grams
    anywhere: Anchors  # of short items that may be anywhere
    tails: Any  # uint64: filter of the tails of short items
    powers: Any  # uint64[more than the longest run]: BASE ** k; their number is a power of two
    keys: Any  # uint64[slots]
    values: Any  # int32[slots], ABSENT if free
    shorts: Shorts


def make_anchors(words: Hashes, begins: Ints, lengths: Ints, shortest: int) -> Anchors:
    """The anchors within runs of `words`, none of which is shorter than `shortest`."""
    stride = max(1, (shortest - 1) // 2)
    size = shortest - stride + 1
    inside = np.zeros(len(words) + 2, np.int64)  # how many runs an anchor that begins here lies within, as differences
    np.add.at(inside, begins, 1)
    np.add.at(inside, begins + lengths - size + 1, -1)
    hashes = window_hashes(words, size)
    return Anchors(size, stride, _make_filter(hashes[np.cumsum(inside)[: len(hashes)] > 0]))


def make_tables(
    size: int, whole: bool, grams: Anchors, anywhere: Anchors, gram_hashes: Hashes, tail_hashes: Hashes, shorts: Shorts
) -> Tables:
    """Tables in which `gram_hashes[k]` has the id k and `tail_hashes[k]` the value -1 - k; all of these differ."""
    keys = np.concatenate([gram_hashes, tail_hashes])
    slots = _power_of_two(max(_SMALLEST, len(keys) + len(keys) // 2))
    longest = max(size, int(shorts.lengths.max(initial=0)))
    powers = [pow(_BASE, k, 1 << 64) for k in range(_power_of_two(longest + 1))]
    tables = Tables(
        size, whole, grams, anywhere, _make_filter(tail_hashes), np.array(powers, np.uint64),
        np.zeros(slots, np.uint64), np.full(slots, ABSENT, np.int32), shorts,
    )
    _fill(tables, keys, np.concatenate([np.arange(len(gram_hashes)), -1 - np.arange(len(tail_hashes))]))
    return tables


def _power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (number - 1).bit_length()


def _make_filter(hashes: Hashes) -> Hashes:
    bits = np.zeros(_power_of_two(max(_SMALLEST, _BITS_AN_ENTRY * len(hashes) // 64)), np.uint64)
    _fill_filter(bits, hashes)
    return bits


@kernel
def _fill_filter(bits, hashes):
    for k in range(hashes.size):
        bits[_word_of(bits, hashes[k])] |= _bits_of(hashes[k])


@inlined
def _word_of(bits, key):
    return (key >> _TWELVE) & np.uint64(bits.size - 1)


@inlined
def _bits_of(key):
    return (_ONE << (key & _LOW_SIX)) | (_ONE << ((key >> _SIX) & _LOW_SIX))


@inlined
def may_contain(bits, key):
    """Whether a filter may hold a key; a no is certain."""
    wanted = _bits_of(key)
    return (bits[_word_of(bits, key)] & wanted) == wanted


@kernel
def _fill(tables, keys, given):
    mask = np.uint64(tables.keys.size - 1)
    for k in range(keys.size):
        slot = keys[k] & mask
        while tables.values[slot] != ABSENT:
            slot = (slot + _ONE) & mask
        tables.keys[slot], tables.values[slot] = keys[k], given[k]


@inlined
def look_up(tables, key):
    """The value of a key, ABSENT if it has none."""
    mask = np.uint64(tables.keys.size - 1)
    slot = key & mask
    while tables.values[slot] != ABSENT and tables.keys[slot] != key:
        slot = (slot + _ONE) & mask
    return tables.values[slot]


def window_hashes(words: Hashes, size: int) -> Hashes:
    """The hash of every run of `size` words, in order; none if there are fewer words."""
    out = np.empty(max(0, len(words) - size + 1), np.uint64)
    _hash_windows(words, size, np.uint64(pow(_BASE, size, 1 << 64)), out)
    return out


@kernel
def _hash_windows(words, size, power, out):
    total, before = np.uint64(0), np.uint64(0)  # sums up to here and up to the first word of the run
    for k in range(words.size):
        total = total * BASE + words[k]
        if k >= size:
            before = before * BASE + words[k - size]
        if k >= size - 1:
            out[k - size + 1] = mix(total - before * power)


def run_hashes(
    words: Hashes, begins: Ints, ends: Ints, kind: np.uint64
) -> Hashes:
    """The keys of runs `words[begins[k]:ends[k]]` that are no n-grams; `kind` is ANYWHERE, BOUNDED or WHOLE."""
    out = np.empty(len(begins), np.uint64)
    _hash_runs(words, begins, ends, kind, out)
    return out


@kernel
def _hash_runs(words, begins, ends, kind, out):
    for run in range(begins.size):
        total = np.uint64(0)
        for k in range(begins[run], ends[run]):
            total = total * BASE + words[k]
        out[run] = mix(total + kind)


def varied_runs(
    words: Hashes,
    letters: npt.NDArray[np.bool_],
    begins: Ints,
    ends: Ints,
    wanted: int,
) -> npt.NDArray[np.bool_]:
    """Which runs hold at least `wanted` different words with a letter in them."""
    out = np.empty(len(begins), np.bool_)
    _mark_varied(words, letters, begins, ends, wanted, out)
    return out


@kernel
def _mark_varied(words, letters, begins, ends, wanted, out):
    for run in range(begins.size):
        different = 0
        for k in range(begins[run], ends[run]):
            new = letters[k]
            for earlier in range(begins[run], k if new else begins[run]):
                if words[earlier] == words[k]:
                    new = False
                    break
            different += new
            if different == wanted:
                break
        out[run] = different >= wanted
