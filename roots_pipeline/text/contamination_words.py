# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Words as decontamination sees them: folded, so that only letters and numbers in their order count.

HTML tags and character references between words are markup: they separate words and are none themselves.

`next_word` is the step of every kernel here; `read_words` lists the words of some texts. What is folded, and what a
word and a border are, is said in `contamination_characters`.

A word's hash is made of its folded characters: an ASCII character is one byte, any other four, whose last is no ASCII
byte, so that different words give different bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.contamination_characters import (
    ALONE,
    BORDER,
    CODE,
    HAN,
    HAN_SIZE,
    IGNORED,
    LETTER,
    LETTER_SIZE,
    LONGER,
    MARK,
    SEPARATOR,
    WORD_SIZE,
    Folding,
)
from roots_pipeline.text.hashes import extend, mix
from roots_pipeline.text.memory import inlined, kernel, load_eight, trailing_zeros

_NONE, _ONE, _TWO, _THREE, _FOUR, _SEVEN, _EIGHT = (np.uint64(number) for number in (0, 1, 2, 3, 4, 7, 8))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_TOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_CASE_BITS = np.uint64(0x2020202020202020)
# Added to bytes below 128, these set the top bit of those from a letter or digit on, or of those behind the last one.
_FROM_A, _AFTER_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)
_FROM_0, _AFTER_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
_NOT_ASCII = 0x80000000
_LESS, _MORE, _SLASH, _AMPERSAND, _NUMBER_SIGN, _SEMICOLON, _SPACE = 0x3C, 0x3E, 0x2F, 0x26, 0x23, 0x3B, 0x20
_LONGEST_NAME, _LONGEST_TAG = 16, 256


@inlined
def next_word(data, i, end, folding):
    """Skip to the next word and read it.

    Returns (its first byte, the byte behind it, where to go on, hash, size in twelfths, whether it has a letter,
    whether a border was skipped). A word of size 0 means that there is none.
    """
    table, longer = folding.table, folding.longer
    border = np.uint32(0)
    while i < end:
        code, step = decode(data, i, end)
        kind = table[code]
        if not kind & (SEPARATOR | IGNORED):
            break
        border |= kind & BORDER
        if code == _LESS:
            step = max(step, _tag(data, i, end))
        elif code == _AMPERSAND:
            step = max(step, _reference(data, i, end))
        i += step
    start = stop = i
    value = rest = length = letters = _NONE
    size = 0
    while i < end:
        if i + 8 <= end and size != LETTER_SIZE and size != HAN_SIZE:
            eight, plain, found = _fold_ascii(load_eight(data, i))
            if plain:
                value, rest = _append(value, rest, length, eight, plain)
                length += plain
                letters |= found
                i += np.int64(plain)
                stop = i
                size = WORD_SIZE
                if plain == _EIGHT:
                    continue
                if i >= end:
                    break
        code, step = decode(data, i, end)
        kind = table[code]
        if kind & SEPARATOR:
            break
        if not kind & IGNORED:
            if size and (kind & ALONE or (size != WORD_SIZE and not kind & MARK)):
                break
            if kind & ALONE:
                size = HAN_SIZE if kind & HAN else LETTER_SIZE
            elif not size:
                size = WORD_SIZE
            letters |= np.uint64(kind & LETTER)
            if kind & LONGER:
                for k in range(3):
                    part = longer[kind & CODE, k]
                    if part:
                        value, rest, length = _append_character(value, rest, length, part)
            else:
                value, rest, length = _append_character(value, rest, length, kind & CODE)
        i += step
        stop = i
    return start, stop, i, mix(extend(value, rest) ^ length), size, letters != _NONE, border != 0


@kernel
def _tag(data, i, end):
    """Bytes of the HTML tag that begins with the `<` here; 0 if there is none."""
    at = i + 1
    if at < end and data[at] == _SLASH:
        at += 1
    name = at
    if at >= end or not _is_letter(data[at]):
        return 0
    while at < end and at - name < _LONGEST_NAME and (_is_letter(data[at]) or _is_digit(data[at])):
        at += 1
    if at < end and data[at] <= _SPACE:  # attributes
        while at < end and at - i < _LONGEST_TAG and data[at] != _LESS and data[at] != _MORE:
            at += 1
    elif at < end and data[at] == _SLASH:
        at += 1
    return at + 1 - i if at < end and data[at] == _MORE else 0


@kernel
def _reference(data, i, end):
    """Bytes of the character reference that begins with the `&` here, such as &amp; or &#39;; 0 if there is none."""
    at = i + 1
    if at < end and data[at] == _NUMBER_SIGN:
        at += 1
    name = at
    while at < end and at - name < _LONGEST_NAME and (_is_letter(data[at]) or _is_digit(data[at])):
        at += 1
    return at + 1 - i if name < at < end and data[at] == _SEMICOLON else 0


@inlined
def _is_letter(byte):
    return 0x61 <= (byte | 0x20) <= 0x7A


@inlined
def _is_digit(byte):
    return 0x30 <= byte <= 0x39


@inlined
def _append_character(value, rest, length, code):
    size = _ONE if code < 128 else _FOUR
    value, rest = _append(value, rest, length, np.uint64(code if code < 128 else code | _NOT_ASCII), size)
    return value, rest, length + size


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
def _fold_ascii(eight):
    """The ASCII letters and digits that eight bytes begin with, lower-cased (all else 0), how many, and any letter."""
    low = eight & _LOW_BITS
    folded = low | _CASE_BITS
    letters = (folded + _FROM_A) & ~(folded + _AFTER_Z) & ~eight & _TOP_BITS
    digits = (low + _FROM_0) & ~(low + _AFTER_9)
    others = ~(letters | digits) & _TOP_BITS | eight & _TOP_BITS
    eight |= letters >> _TWO
    if not others:
        return eight, _EIGHT, letters
    plain = np.uint64(trailing_zeros(others) >> 3)
    taken = ~(_ALL << (plain << _THREE))
    return eight & taken, plain, letters & taken


class Words(NamedTuple):
    """The words of some texts, one text after the other."""

    first: npt.NDArray[np.int64]  # where each text's words begin; texts + 1 entries
    hashes: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint8]  # in twelfths
    letters: npt.NDArray[np.bool_]  # whether it has a letter
    lengths: npt.NDArray[np.uint16]  # in characters, a Han character counting as 3, marks as none; at most 65,535
    starts: npt.NDArray[np.int64]  # its first byte
    stops: npt.NDArray[np.int64]  # the byte behind it


def read_words(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], folding: Folding) -> Words:
    """All words of the texts `data[offsets[k]:offsets[k + 1]]` (UTF-8)."""
    first = np.zeros(len(offsets), np.int64)
    _count_words(data, offsets, folding, first)
    total = int(first[-1])
    kinds: tuple[Any, ...] = (np.uint64, np.uint8, np.bool_, np.uint16, np.int64, np.int64)
    words = Words(first, *(np.empty(total, kind) for kind in kinds))
    _write_words(data, offsets, folding, words)
    return words


@kernel
def _count_words(data, offsets, folding, first):
    for text in range(len(offsets) - 1):
        i, end, count = offsets[text], offsets[text + 1], first[text]
        while True:
            _, _, i, _, size, _, _ = next_word(data, i, end, folding)
            if not size:
                break
            count += 1
        first[text + 1] = count


@kernel
def _write_words(data, offsets, folding, words):
    k = 0
    for text in range(len(offsets) - 1):
        i, end = offsets[text], offsets[text + 1]
        while True:
            start, stop, i, value, size, letters, _ = next_word(data, i, end, folding)
            if not size:
                break
            words.hashes[k], words.sizes[k], words.letters[k] = value, size, letters
            words.lengths[k] = _length(data, start, stop, folding)
            words.starts[k], words.stops[k] = start, stop
            k += 1


@kernel
def _length(data, i, stop, folding):
    length = 0
    while i < stop:
        code, step = decode(data, i, stop)
        kind = folding.table[code]
        if not kind & (IGNORED | MARK):
            length += 3 if kind & HAN else 1
        i += step
    return min(length, 65535)
