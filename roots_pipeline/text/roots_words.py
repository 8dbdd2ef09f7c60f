# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The words that the ROOTS filters compare: lower-cased, then without the special characters at both ends, as hashes.

Where words are what separates them (`SPACED`), a word is what lies between spaces, tabs and newlines, nothing else.
Where they are single characters (`CHARACTERS`), which stands in for a tokenizer of Chinese, each character of the
normalised text is a word, spaces too; a table says what normalisation makes of a character.

A word of nothing but special characters is none. Two sets of words come out of one text: those of the lower-cased
text, as hashes, and, only counted, those of the text as it is. They differ, because some characters are special in one
case only (capital Г of Cyrillic, small ø).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.hashes import extend, mix
from roots_pipeline.text.memory import inlined, kernel, load_eight, trailing_zeros
from roots_pipeline.text.roots_characters import (
    BLANK,
    CHANGES,
    DOTTED_I,
    SIGMA,
    SPECIAL,
    SPECIAL_LOWERED,
    lower_sigma,
    previous,
    to_utf8,
)

SPACED = 0
CHARACTERS = 1

# What normalisation makes of a character, where it is not one word, in the table of `WordRules.single`: no code points.
NO_WORD, DELETED, TWO_SPACES, SIGMA_WORD, DOTTED_I_WORDS = range(0x110000, 0x110005)

_SPACE_WORD = 0x2581  # SentencePiece's sign for a space
_SMALL_I, _DOT_ABOVE = 0x69, 0x307
_NEWLINE, _TAB, _SPACE = 10, 9, 32
_NONE, _ONE, _TWO, _THREE, _EIGHT = (np.uint64(number) for number in (0, 1, 2, 3, 8))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_TOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_FIRST_PRINTING = np.uint64(0x2121212121212121)
_FROM_C2, _FROM_D7 = np.uint64(0x3E3E3E3E3E3E3E3E), np.uint64(0x2929292929292929)
_FROM_E1, _FROM_E3 = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x1D1D1D1D1D1D1D1D)
_FROM_EA = np.uint64(0x1616161616161616)
_FROM_A, _AFTER_Z = np.uint64(0x3F3F3F3F3F3F3F3F), np.uint64(0x2525252525252525)
_START = np.uint64(0x452821E638D01377)


class WordRules(NamedTuple):
    """The tables that say what the words of a text are."""

    flags: Any  # uint8[0x110000], of `roots_characters`
    lower: Any  # uint32[0x110000]
    single: Any  # uint32[0x110000], for CHARACTERS: the word that a character becomes, or one of the numbers above
    single_flags: Any  # as `flags`, with deleted characters made IGNORABLE


@kernel
def read_spaced(data, i, end, rules, words, count):
    """Read words from byte i until `words` is full: (byte where it stopped, words in `words`, words read as they are).

    `words` holds `count` already. Call until the byte is `end`.
    """
    flags = rules.flags
    as_is = 0
    while i < end and count < words.size:
        start = i
        if i + 8 <= end:
            # Most words: up to seven ASCII characters, a separator, nothing special at the ends.
            eight = load_eight(data, i)
            length = _printing_ascii(eight)
            i += length
            if length < 8 and _separates(data[i]):
                i += 1
                if not length:
                    continue
                if not (flags[data[start]] | flags[data[start + length - 1]]) & SPECIAL:
                    words[count] = _hash_few(_lower_ascii(eight), length)
                    count += 1
                    as_is += 1
                    continue
            i = start
        elif _separates(data[i]):
            i += 1
            continue
        i, may_change = _word_end(data, i, end)
        first, last = _inner_word(data, start, i, flags)
        if first < last and not may_change and not flags[decode(data, first, last)[0]] & SPECIAL:
            words[count] = hash_word(data, first, last, True)
            count += 1
            as_is += 1
        else:
            words[count], more, counts = _unusual_word(data, start, first, last, i, rules)
            count += more
            as_is += counts
    return i, count, as_is


@inlined
def _separates(byte):
    return (byte == _SPACE) | (byte == _NEWLINE) | (byte == _TAB)


@inlined
def _printing_ascii(eight):
    """How many of eight bytes come before the first that is no printing character of ASCII."""
    # The top bit of a byte of `stops` says that it is none. Bits above the lowest one set may be wrong (a borrow).
    stops = ((eight - _FIRST_PRINTING) & ~eight | eight) & _TOP_BITS
    return trailing_zeros(stops) >> 3 if stops else np.int64(8)


@inlined
def _hash_few(eight, length):
    """`hash_word` of the first one to seven of eight bytes, as they are."""
    word = eight & (_ALL >> np.uint64(64 - 8 * length))
    return mix(extend(_START, word) ^ np.uint64(length))


@inlined
def _word_end(data, i, end):
    """Where the word at byte i ends, and whether it may have a letter beyond ASCII that lower case changes."""
    may_change = _NONE
    while i < end:
        if i + 8 <= end:
            eight = load_eight(data, i)
            stops = (eight - _FIRST_PRINTING) & ~eight & _TOP_BITS  # as in `_printing_ascii`
            if not stops:
                may_change |= _capital_leads(eight)
                i += 8
                continue
            may_change |= _capital_leads(eight) & (stops ^ (stops - _ONE))
            i += trailing_zeros(stops) >> 3
        byte = data[i]
        if _separates(byte):
            break
        may_change |= _capital_leads(np.uint64(byte))
        i += 1
    return i, may_change


@inlined
def _capital_leads(eight):
    """Top bits of the bytes C2 to D6, E1, E2 and EA to FF: all with which the UTF-8 of a capital letter begins."""
    # Sums stay below 256 in each byte, and their top bit says whether the byte is at least the one looked for.
    low = eight & _LOW_BITS
    two_bytes = (low + _FROM_C2) & ~(low + _FROM_D7)
    three_bytes = (low + _FROM_E1) & ~(low + _FROM_E3)
    return (two_bytes | three_bytes | (low + _FROM_EA)) & eight & _TOP_BITS


@inlined
def _inner_word(data, first, last, flags):
    """A word without what is special in lower case at its ends: (first byte, byte after the last)."""
    while first < last:
        code, length = decode(data, first, last)
        if not flags[code] & SPECIAL_LOWERED:
            break
        first += length
    while first < last:
        i = previous(data, first, last)
        if not flags[decode(data, i, last)[0]] & SPECIAL_LOWERED:
            break
        last = i
    return first, last


@inlined
def hash_word(data, start, stop, lower_ascii):
    """The hash of the bytes `data[start:stop]`, capital letters of ASCII lower-cased by option."""
    value, length = _START, np.uint64(stop - start)
    while start < stop:
        if start + 8 <= data.size:
            eight = load_eight(data, start)
            if stop - start < 8:
                eight &= _ALL >> np.uint64(64 - 8 * (stop - start))
        else:
            eight = _NONE
            for k in range(min(stop - start, 8)):
                eight |= np.uint64(data[start + k]) << np.uint64(8 * k)
        if lower_ascii:
            eight = _lower_ascii(eight)
        value = extend(value, eight)
        start += 8
    return mix(value ^ length)


@inlined
def _lower_ascii(eight):
    """Eight bytes with capital letters of ASCII in lower case."""
    low = eight & _LOW_BITS  # see `_capital_leads`
    capital = (low + _FROM_A) & ~(low + _AFTER_Z) & ~eight & _TOP_BITS
    return eight | capital >> _TWO


@kernel
def _unusual_word(data, start, first, last, end, rules):
    """The word `data[start:end]`, in lower case `data[first:last]`: (hash, 1 if it is one, 1 if it is as it is)."""
    flags = rules.flags
    changes = as_is = False
    i = start
    while i < end:
        code, length = decode(data, i, end)
        as_is |= not flags[code] & SPECIAL
        changes |= (flags[code] & CHANGES) != 0
        i += length
    if first == last:
        return _NONE, 0, as_is
    if changes:
        return _hash_lowered(data, start, first, last, end, rules), 1, as_is
    return hash_word(data, first, last, True), 1, as_is


@kernel
def _hash_lowered(data, start, first, last, end, rules):
    """The hash of `data[first:last]` in lower case; the whole word, `data[start:end]`, decides on sigmas."""
    value, rest, length = _START, _NONE, _NONE
    i = first
    while i < last:
        code, size = decode(data, i, last)
        if code == SIGMA:
            lowered = lower_sigma(data, start, i, end, rules.flags)
        elif code == DOTTED_I:
            value, rest, length = _append(value, rest, length, _SMALL_I)
            lowered = _DOT_ABOVE
        else:
            lowered = np.int64(rules.lower[code])
        value, rest, length = _append(value, rest, length, lowered)
        i += size
    if length & np.uint64(7):
        value = extend(value, rest)
    return mix(value ^ length)


@inlined
def _append(value, rest, length, code):
    """Put a character behind a word: (hash of its full groups of eight bytes, the bytes since, its length in bytes)."""
    utf8, size = to_utf8(code)
    filled = length & np.uint64(7)
    rest |= utf8 << (filled << _THREE)
    if filled + np.uint64(size) >= _EIGHT:
        value = extend(value, rest)
        rest = utf8 >> ((_EIGHT - filled) << _THREE) if filled else _NONE
    return value, rest, length + np.uint64(size)


@inlined
def _hash_character(code):
    utf8, size = to_utf8(code)
    return mix(extend(_START, utf8) ^ np.uint64(size))


@kernel
def inner_text(data, start, end, rules):
    """A text without the white space and the deleted characters at its ends: (first byte, byte after the last)."""
    while start < end:
        code, length = decode(data, start, end)
        if not (rules.flags[code] & BLANK or rules.single[code] == DELETED):
            break
        start += length
    while start < end:
        i = previous(data, start, end)
        code = decode(data, i, end)[0]
        if not (rules.flags[code] & BLANK or rules.single[code] == DELETED):
            break
        end = i
    return start, end


@kernel
def read_characters(data, start, i, end, rules, words, count):
    """As `read_spaced`, for single characters; `data[start:end]` is the inner text."""
    single = rules.single
    before = count
    while i < end and count + 2 <= words.size:
        code, length = decode(data, i, end)
        word = np.int64(single[code])
        if word == code and i + 8 <= end:
            words[count] = _hash_few(load_eight(data, i), length)
            count += 1
        elif word > NO_WORD:
            count += _unusual_words(data, start, i, end, rules, word, words, count)
        else:
            words[count] = _hash_character(word)
            count += word != NO_WORD
        i += length
    return i, count, count - before


@kernel
def _unusual_words(data, start, i, end, rules, kind, words, count):
    """Write the words of the character at byte i that are not one by the table; returns how many they are."""
    if kind == TWO_SPACES:
        words[count] = words[count + 1] = _hash_character(_SPACE_WORD)
        return 2
    if kind == DOTTED_I_WORDS:
        words[count], words[count + 1] = _hash_character(_SMALL_I), _hash_character(_DOT_ABOVE)
        return 2
    if kind == SIGMA_WORD:
        words[count] = _hash_character(lower_sigma(data, start, i, end, rules.single_flags))
        return 1
    return 0


@kernel
def hash_entries(data, offsets, out):
    """The hashes of whole texts, as they are."""
    for k in range(len(offsets) - 1):
        out[k] = hash_word(data, offsets[k], offsets[k + 1], False)


def hash_strings(strings: list[str]) -> npt.NDArray[np.uint64]:
    """The hash of each string, equal to that of the word it is."""
    encoded = [string.encode() for string in strings]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    out = np.empty(len(encoded), np.uint64)
    hash_entries(np.frombuffer(b"".join(encoded), np.uint8), offsets, out)
    return out
