"""Words: found in one scan over UTF-8, described by a hash, their length in characters, and what they are made of.

Two settings, chosen per text:
`SPACED`      a word is a maximal run of characters that are not white space (what `str.split` gives).
`CHARACTERS`  for scripts without spaces: each letter of such a script, with the combining marks after it, is a word of
              its own; what lies between such letters and white space is a word as in `SPACED`.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import ALPHABETIC, MARK, SPACE, SPECIAL, UNSPACED, Classes, decode
from roots_pipeline.text.hashes import hash_range
from roots_pipeline.text.memory import inlined, kernel, load_eight, trailing_zeros

SPACED = 0
CHARACTERS = 1

_DOT, _HASH, _NEWLINE = 46, 35, 10
_ONE = np.uint64(1)
_ONES = np.uint64(0x0101010101010101)
_TOP_BITS = np.uint64(0x8080808080808080)
_FIRST_PRINTING = np.uint64(0x2121212121212121)
_DOTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_HASHES = np.uint64(0x2323232323232323)


@inlined
def skip_space(data, i, end, classes):
    """Where the white space that starts at byte i ends, and the number of newlines in it."""
    newlines = 0
    while i < end:
        byte = np.int64(data[i])
        if byte < 128:
            if not classes[byte] & SPACE:
                break
            newlines += byte == _NEWLINE
            i += 1
        else:
            code, length = decode(data, i, end)
            if not classes[code] & SPACE:
                break
            i += length
    return i, newlines


@inlined
def scan_word(data, i, end, classes, setting):
    """The word that starts at byte i: (byte where it ends, hash, characters, the flags of its characters).

    Flags of ASCII characters after the first letter are left out, except SPECIAL: a letter has ALPHABETIC and CONTENT.
    """
    start = i
    i, special = _ascii_end(data, i, end)
    flags = np.int64(classes[data[start]]) if i > start else 0
    k = start + 1
    while k < i and not flags & ALPHABETIC:
        flags |= classes[data[k]]
        k += 1
    if special:
        flags |= SPECIAL
    characters = i - start
    if i < end and not (data[i] < 128 and classes[data[i]] & SPACE):
        i, characters, flags = _rest_of_word(data, start, i, end, classes, setting, flags)
    return i, hash_range(data, start, i), characters, flags


@inlined
def _ascii_end(data, i, end):
    """The first byte from i on that is not a printing ASCII character, and whether '#' or '.' lies before it."""
    special = np.uint64(0)
    while i + 8 <= end:
        # Eight bytes at a time: the top bit of a byte of `stops` says that it is no printing ASCII character. Bits
        # above the lowest one set may be wrong (a borrow), so only the lowest is used.
        eight = load_eight(data, i)
        stops = (((eight - _FIRST_PRINTING) & ~eight) | eight) & _TOP_BITS
        dots, hashes = eight ^ _DOTS, eight ^ _HASHES
        found = (((dots - _ONES) & ~dots) | ((hashes - _ONES) & ~hashes)) & _TOP_BITS
        if stops:
            special |= found & (stops ^ (stops - _ONE))
            return i + (trailing_zeros(stops) >> 3), special != 0
        special |= found
        i += 8
    while i < end and 32 < data[i] < 128:
        if data[i] == _DOT or data[i] == _HASH:
            special |= _ONE
        i += 1
    return i, special != 0


@kernel
def _rest_of_word(data, start, i, end, classes, setting, flags):
    """The end, characters and flags of a word whose ASCII part `data[start:i]` has the given flags."""
    characters = i - start
    alone = False  # the word is a letter of an unspaced script: only marks may follow
    while i < end:
        code, length = decode(data, i, end)
        kind = classes[code]
        if kind & SPACE or (alone and not kind & MARK):
            break
        if setting == CHARACTERS and kind & UNSPACED:
            if characters > 0:
                break
            alone = True
        flags |= kind
        characters += 1
        i += length
    return i, characters, flags


@kernel
def count_special(data, start, stop):
    """('#', ellipses) in a word; an ellipsis is '…' or three dots, counted without overlap."""
    hashes = ellipses = dots = 0
    for i in range(start, stop):
        byte = data[i]
        if byte == _DOT:
            dots += 1
            if dots == 3:
                ellipses += 1
                dots = 0
        else:
            dots = 0
            hashes += byte == _HASH
            ellipses += _is_ellipsis(data, i, stop)
    return hashes, ellipses


@kernel
def ends_in_ellipsis(data, start, stop):
    """Whether a word ends in '…' or in three dots."""
    if stop - start < 3:
        return False
    if data[stop - 1] == _DOT:
        return data[stop - 2] == _DOT and data[stop - 3] == _DOT
    return _is_ellipsis(data, stop - 3, stop)


@kernel
def _is_ellipsis(data, i, stop):
    return i + 3 <= stop and data[i] == 0xE2 and data[i + 1] == 0x80 and data[i + 2] == 0xA6


def hash_words(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], classes: Classes, setting: int = SPACED
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The hashes of all words, their lengths in characters, and where each text's words start (texts + 1 entries)."""
    first = np.zeros(len(offsets), np.int64)
    _count_words(data, offsets, classes, setting, first)
    hashes, lengths = np.empty(first[-1], np.uint64), np.empty(first[-1], np.int64)
    _write_words(data, offsets, classes, setting, hashes, lengths)
    return hashes, lengths, first


@kernel
def _count_words(data, offsets, classes, setting, first):
    for text in range(len(offsets) - 1):
        i, end = offsets[text], offsets[text + 1]
        count = first[text]
        i, _ = skip_space(data, i, end, classes)
        while i < end:
            i, _, _, _ = scan_word(data, i, end, classes, setting)
            i, _ = skip_space(data, i, end, classes)
            count += 1
        first[text + 1] = count


@kernel
def _write_words(data, offsets, classes, setting, hashes, lengths):
    word = 0
    for text in range(len(offsets) - 1):
        end = offsets[text + 1]
        i, _ = skip_space(data, offsets[text], end, classes)
        while i < end:
            i, hashes[word], lengths[word], _ = scan_word(data, i, end, classes, setting)
            i, _ = skip_space(data, i, end, classes)
            word += 1
