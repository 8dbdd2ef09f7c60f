# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""N-grams of words or characters as 64-bit hashes, read from UTF-8 in blocks, so that a book needs no more memory.

Before n-grams are formed the text is normalised: white space only separates, characters of the Unicode categories P and
S (punctuation and symbols) are left out, and by option letters are lower-cased. What is left of a run between white
space is a word; a run of nothing but punctuation is none. A letter of a script without spaces is a word of its own,
with its marks. In n-grams of characters a stretch of white space counts as one space.

In: Arrow text buffers. Out: `ngram_hashes`, all n-grams of each text, in order and with repetitions; the kernels
`next_ngrams` and `whole_text_hash` serve `minhash`.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import CONTENT, MARK, SPACE, UNSPACED, Classes, character_classes, decode
from roots_pipeline.text.hashes import MULTIPLIER, extend, mix
from roots_pipeline.text.memory import allocating, inlined, kernel, load_eight, trailing_zeros

WORDS = 0
CHARACTERS = 1
BLOCK = 4096  # n-grams made at a time

# A polynomial in an odd base modulo 2^64; base = 5 modulo 8 has the longest period.
_BASE = 0x9E3779B97F4A7C15
_SPACE_UNIT = np.uint64(0x243F6A8885A308D3)
_NONE, _ONE, _TWO, _THREE, _FOUR, _SEVEN, _EIGHT = (np.uint64(number) for number in (0, 1, 2, 3, 4, 7, 8))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_TOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_CASE_BITS = np.uint64(0x2020202020202020)
_FROM_A, _AFTER_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)
_FROM_0, _AFTER_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
_NOT_ASCII = 0x80000000


class Ngrams(NamedTuple):
    """What n-grams are: the tables that kernels look characters up in, and numbers that follow from the size."""

    classes: Any  # uint8[0x110000]; punctuation lacks CONTENT
    lower: Any  # uint32[0x110000], or empty: the case is kept
    unit: int  # WORDS or CHARACTERS
    size: int
    base: Any  # uint64
    power: Any  # uint64, base ** (size - 1)


def ngrams_of(unit: int, size: int, lower_case: bool = False) -> Ngrams:
    """The n-grams of `size` units (WORDS or CHARACTERS), of the text as it is or lower-cased."""
    lower = _lower_case() if lower_case else np.empty(0, np.uint32)
    power = np.uint64(pow(_BASE, size - 1, 1 << 64))
    return Ngrams(_content_classes(), lower, unit, size, np.uint64(_BASE), power)


@lru_cache(maxsize=1)
def _content_classes() -> Classes:
    """Character classes in which punctuation and symbols lack CONTENT."""
    planes = (range(0x33480), range(0xE0000, 0xE0200))
    return character_classes(
        symbols="".join(chr(code) for plane in planes for code in plane if unicodedata.category(chr(code))[0] in "PS")
    )


@lru_cache(maxsize=1)
def _lower_case() -> npt.NDArray[np.uint32]:
    """The lower-case letter of every code point that has a single one."""
    table = np.arange(0x110000, dtype=np.uint32)
    for code in range(0x1E944):
        lower = chr(code).lower()
        if len(lower) == 1:
            table[code] = ord(lower)
    table.setflags(write=False)
    return table


def ngram_hashes(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], ngrams: Ngrams, short_whole: bool
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The hashes of all n-grams of each text, one after the other, and where each text's begin (texts + 1 entries).

    A text of fewer units than an n-gram has none; with `short_whole` the text as a whole is its only one. A text
    without any unit never has one.
    """
    bounds: npt.NDArray[np.int64] = np.zeros(len(offsets), np.int64)
    _all_ngrams(data, offsets, ngrams, short_whole, bounds, np.empty(0, np.uint64))
    np.cumsum(bounds, out=bounds)
    hashes = np.empty(bounds[-1], np.uint64)
    _all_ngrams(data, offsets, ngrams, short_whole, np.zeros_like(bounds), hashes)
    return hashes, bounds


@allocating
def _all_ngrams(data, offsets, ngrams, short_whole, counts, out):
    """Count the n-grams of each text in `counts[text + 1]`, and write them if `out` has room."""
    units, grams, state = np.empty(BLOCK + ngrams.size, np.uint64), np.empty(BLOCK + 2, np.uint64), new_state()
    at = 0
    for text in range(len(offsets) - 1):
        i, end, held, found = offsets[text], offsets[text + 1], 0, 0
        state[:] = 0
        more = True
        while more:
            i, held, number = next_ngrams(data, i, end, ngrams, units, held, grams, state)
            more = i < end
            if not more and found + number == 0 and short_whole and held > 0:
                grams[0], number = whole_text_hash(ngrams, units, held), 1
            for k in range(number if out.size else 0):
                out[at + found + k] = grams[k]
            found += number
        at += found
        counts[text + 1] = found


@allocating
def new_state():
    """What is known of the unit under way between two blocks; zeros at the start of a text."""
    return np.zeros(4, np.uint64)


@kernel
def next_ngrams(data, i, end, ngrams, units, held, grams, state):
    """Read on from byte i: (byte where it stopped, units held over for the next call, n-grams now in `grams`).

    Call until the byte is `end`. `units` has room for BLOCK + size hashes, `grams` for BLOCK + 2.
    """
    if ngrams.unit == WORDS:
        i, count = _read_words(data, i, end, ngrams, units, held, state)
    else:
        i, count = _read_characters(data, i, end, ngrams, units, held, state)
    size = ngrams.size
    if count < size:
        return i, count, 0
    value = np.uint64(0)
    for k in range(size - 1):
        value = value * ngrams.base + units[k]
    for k in range(size - 1, count):
        value = value * ngrams.base + units[k]
        grams[k - size + 1] = mix(value)
        value -= units[k - size + 1] * ngrams.power
    for k in range(size - 1):
        units[k] = units[count - size + 1 + k]
    return i, size - 1, count - size + 1


@kernel
def whole_text_hash(ngrams, units, held):
    """The hash of a text of fewer units than an n-gram has."""
    value = np.uint64(held)
    for k in range(held):
        value = value * ngrams.base + units[k]
    return mix(value)


@kernel
def _read_words(data, i, end, ngrams, units, count, state):
    # Of the word under way: the hash of its full groups of eight bytes, the bytes since, its length, and whether it is
    # a letter of a script without spaces, which only marks may follow.
    value, rest, length, alone = state[0], state[1], state[2], state[3]
    classes, lower = ngrams.classes, ngrams.lower
    last = units.size - 3
    while i < end and count <= last:
        if i + 8 <= end and not alone:
            eight, plain = _letters_and_digits(load_eight(data, i), lower.size > 0)
            if plain:
                value, rest = _append(value, rest, length, eight, plain)
                length += plain
                i += np.int64(plain)
                if plain == _EIGHT:
                    continue
                if i >= end:
                    break
        code, step = decode(data, i, end)
        kind = classes[code]
        i += step
        if length and (kind & SPACE or (kind & CONTENT and (kind & UNSPACED or (alone and not kind & MARK)))):
            units[count] = mix(extend(value, rest) ^ length)
            count += 1
            value = rest = length = alone = _NONE
        if kind & SPACE or not kind & CONTENT:
            continue
        if kind & UNSPACED:
            alone = _ONE
        if lower.size:
            code = np.int64(lower[code])
        # Four bytes for a character beyond ASCII; the last is no ASCII, so no two words look alike.
        size = _ONE if code < 128 else _FOUR
        value, rest = _append(value, rest, length, np.uint64(code if code < 128 else code | _NOT_ASCII), size)
        length += size
    if i >= end and length:
        units[count] = mix(extend(value, rest) ^ length)
        count += 1
        value = rest = length = alone = _NONE
    state[0], state[1], state[2], state[3] = value, rest, length, alone
    return i, count


@inlined
def _append(value, rest, length, bytes_, size):
    """Put up to eight bytes (the others are 0) behind a word of `length` bytes: (its hash, the bytes since)."""
    filled = length & _SEVEN
    rest |= bytes_ << (filled << _THREE)
    if filled + size >= _EIGHT:
        value = extend(value, rest)
        rest = bytes_ >> ((_EIGHT - filled) << _THREE) if filled else _NONE
    return value, rest


@inlined
def _letters_and_digits(eight, lower_case):
    """The ASCII letters and digits that eight bytes begin with (all other bytes 0), and how many they are."""
    # Sums stay below 256 in each byte, and their top bit says whether the byte is at least the one looked for.
    low = eight & _LOW_BITS
    folded = low | _CASE_BITS
    letters = (folded + _FROM_A) & ~(folded + _AFTER_Z)
    digits = (low + _FROM_0) & ~(low + _AFTER_9)
    letters &= ~eight & _TOP_BITS
    others = ~(letters | digits) & _TOP_BITS | eight & _TOP_BITS
    if lower_case:
        eight |= letters >> _TWO
    if not others:
        return eight, _EIGHT
    plain = np.uint64(trailing_zeros(others) >> 3)
    return eight & ~(_ALL << (plain << _THREE)), plain


@kernel
def _read_characters(data, i, end, ngrams, units, count, state):
    begun, space = state[0], state[1]  # a character was read; white space followed it
    classes, lower = ngrams.classes, ngrams.lower
    last = units.size - 3
    while i < end and count <= last:
        code, step = decode(data, i, end)
        i += step
        kind = classes[code]
        if kind & SPACE:
            space = begun
            continue
        if not kind & CONTENT:
            continue
        if space:
            units[count] = _SPACE_UNIT
            count += 1
        if lower.size:
            code = np.int64(lower[code])
        units[count] = mix((np.uint64(code) + _ONE) * MULTIPLIER)
        count += 1
        begun, space = _ONE, _NONE
    state[0], state[1] = begun, space
    return i, count
