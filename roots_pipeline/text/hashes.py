"""Hashes of texts, of byte ranges, and of numbers.

`hash_texts` gives the 128-bit XXH3 of each text, for exact deduplication; `hash_texts_without` the same of what is left
without some characters, so that texts which differ in layout only are equal. `mix` and the like serve the kernels.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
from __future__ import annotations

import string
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import xxhash

from roots_pipeline.text.characters import SPACE, character_classes, decode
from roots_pipeline.text.memory import inlined, kernel, load_eight

Hashes = npt.NDArray[np.uint64]

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: each step of a hash is one-to-one
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)  # any odd number but MULTIPLIER
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def mix(value):
    """Spread the bits of a uint64 over all bits; one-to-one, so different values stay different."""
    value ^= value >> _HALF
    value *= _MIXER
    return value ^ (value >> _HALF)


@inlined
def extend(value, item):
    """The hash of a sequence that is longer by one item (both uint64); different items give different hashes."""
    value = (value ^ item) * MULTIPLIER
    return value ^ (value >> _HALF)


@inlined
def pair_key(first, second):
    """The key of two uint64 in this order."""
    return mix(first * MULTIPLIER + second)


@inlined
def hash_range(data, start, stop):
    """64-bit hash of `data[start:stop]`, eight bytes at a time."""
    value = np.uint64(stop - start) * MULTIPLIER
    while start + 8 < stop:
        value = extend(value, load_eight(data, start))
        start += 8
    return mix(extend(value, _load_up_to_eight(data, start, stop)))


@inlined
def _load_up_to_eight(data, start, stop):
    if start == stop:
        return np.uint64(0)
    if start + 8 <= data.size:
        return load_eight(data, start) & (_ALL >> np.uint64(64 - 8 * (stop - start)))
    value = np.uint64(0)
    for k in range(stop - start):
        value |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return value


def hash_spans(
    data: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Two independent 64-bit hashes of each `data[start[i]:stop[i]]`."""
    first, second = np.empty(len(start), np.uint64), np.empty(len(start), np.uint64)
    _hash_spans(data, start, stop, first, second)
    return first, second


@kernel
def _hash_spans(data, start, stop, first, second):
    for k in range(start.size):
        first[k] = hash_range(data, start[k], stop[k])
        value, i = np.uint64(stop[k] - start[k]), start[k]
        while i + 8 <= stop[k]:
            value = extend_otherwise(value, load_eight(data, i))
            i += 8
        while i < stop[k]:
            value = extend_otherwise(value, np.uint64(data[i]))
            i += 1
        second[k] = mix(value)


@inlined
def extend_otherwise(value, item):
    """As `extend`, by another function: two hashes of the same thing that are independent of each other."""
    value = (value + item) * _OTHER
    return value ^ (value >> np.uint64(29))


def hash_texts(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    """XXH3-128 of each text: uint64[n, 2], upper half first."""
    view = data.data
    bounds = offsets.tolist()
    return _from_digests(view[a:b] for a, b in pairwise(bounds))


def hash_texts_without(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], left_out: npt.NDArray[np.uint8], whole_if_empty: bool
) -> Hashes:
    """XXH3-128 of each text without the characters that `left_out` (one flag per code point) marks: uint64[n, 2].

    With `whole_if_empty` a text of which nothing is left is hashed as it is, so that it equals no other.
    """
    longest = int(np.diff(offsets).max(initial=0))
    squeezed = np.empty(longest, np.uint8)
    view, whole = squeezed.data, data.data
    bounds = offsets.tolist()

    def parts() -> Iterable[memoryview]:
        for a, b in pairwise(bounds):
            size = _squeeze(data, a, b, left_out, squeezed)
            yield view[:size] if size or not whole_if_empty else whole[a:b]

    return _from_digests(parts())


@lru_cache(maxsize=1)
def white_space() -> npt.NDArray[np.uint8]:
    """Flags of the white-space characters: uint8[0x110000], read-only."""
    table: npt.NDArray[np.uint8] = (character_classes() & SPACE).astype(np.uint8)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1)
def white_space_digits_punctuation() -> npt.NDArray[np.uint8]:
    """Flags of white space, decimal digits of all scripts, and ASCII punctuation: uint8[0x110000], read-only."""
    table = white_space().copy()
    for code in (*range(0x33480), *range(0xE0000, 0xE0200)):  # nothing is assigned between
        if chr(code).isdecimal():
            table[code] = 1
    for character in string.punctuation:
        table[ord(character)] = 1
    table.setflags(write=False)
    return table


def _from_digests(texts: Iterable[memoryview]) -> Hashes:
    digests = b"".join(xxhash.xxh3_128_digest(text) for text in texts)
    return np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)


@kernel
def _squeeze(data, i, end, left_out, out):
    """Copy a text without the marked characters into `out`; returns how many bytes that makes."""
    size = 0
    while i < end:
        if data[i] < 0x80:  # by far the most frequent
            out[size] = data[i]
            size += not left_out[data[i]]
            i += 1
            continue
        code, length = decode(data, i, end)
        if not left_out[code]:
            for k in range(length):
                out[size + k] = data[i + k]
            size += length
        i += length
    return size
