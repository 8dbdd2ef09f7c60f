# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Texts without unwanted words, as the filters of ROOTS remove them before they measure.

White space is cut off at both ends and spaces of all shapes become the space. Where words are removed, what is left is
joined again: between two words stands one newline, or else one tab, or else one space, whichever of them lay between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.memory import allocating, inlined, kernel
from roots_pipeline.text.roots_characters import BLANK, LINE_END, SPACE_LIKE, SPECIAL, Flags, previous

_NEWLINE, _TAB, _SPACE = 10, 9, 32
KEEP_WORDS = -1


class Unwanted(NamedTuple):
    """The strings whose presence makes a word unwanted."""

    data: Any  # uint8, their bytes one after the other
    offsets: Any  # int64
    begins: Any  # bool[256]: whether one of them begins with this byte


class Manner(NamedTuple):
    """How words are removed; all false is as published."""

    any_case: bool  # unwanted strings are found in any case (of ASCII)
    whole_words: bool  # ... and anywhere in a word, special characters at its ends included
    all_line_ends: bool  # every character that ends a line separates words, and becomes a newline
    trim_again: bool  # spaces that came from other characters are cut off at both ends, too


def unwanted(strings: Sequence[str]) -> Unwanted:
    """The strings for the kernels; none is empty."""
    encoded = [string.encode() for string in strings]
    begins = np.zeros(256, np.bool_)
    for string in encoded:
        begins[list(string[:1].lower() + string[:1].upper())] = True
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return Unwanted(np.frombuffer(b"".join(encoded), np.uint8), offsets, begins)


def modify_texts(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    flags: Flags,
    longest: npt.NDArray[np.int64],
    strings: Unwanted,
    manner: Manner,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The modified texts as `(data, offsets)`.

    Text i loses its words of more than `longest[i]` characters (KEEP_WORDS: no words are removed, these or others)
    unless they have at most as many without the special characters at their ends, and the words that contain one of
    `strings`.
    """
    out = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    ends = np.zeros(len(offsets), np.int64)
    _modify_texts(data, offsets, flags, longest, strings, manner, out, ends)
    return out[: ends[-1]], ends


@allocating
def _modify_texts(data, offsets, flags, longest, strings, manner, out, ends):
    for text in range(len(offsets) - 1):
        start, end = _trimmed(data, offsets[text], offsets[text + 1], flags)
        place = ends[text]
        if longest[text] == KEEP_WORDS:
            stop = _copy_text(data, start, end, flags, manner.all_line_ends, out, place)
            if manner.trim_again:
                stop = _trim_copy(out, place, stop)
        else:
            stop = _copy_words(data, start, end, flags, longest[text], strings, manner, out, place)
        ends[text + 1] = stop


@kernel
def _trimmed(data, start, end, flags):
    """What is left of `data[start:end]` without white space at both ends."""
    while start < end:
        code, length = decode(data, start, end)
        if not flags[code] & BLANK:
            break
        start += length
    while start < end:
        i = previous(data, start, end)
        if not flags[decode(data, i, end)[0]] & BLANK:
            break
        end = i
    return start, end


@kernel
def _trim_copy(out, start, stop):
    """Cut spaces off `out[start:stop]` at both ends; returns where it stops now."""
    while stop > start and out[stop - 1] == _SPACE:
        stop -= 1
    first = start
    while first < stop and out[first] == _SPACE:
        first += 1
    if first > start:
        for i in range(first, stop):
            out[start + i - first] = out[i]
    return start + stop - first


@inlined
def _replaced(kind, all_line_ends):
    """The byte that a character becomes, 0 if it stays."""
    if kind & SPACE_LIKE:
        return _SPACE
    if all_line_ends and kind & LINE_END:
        return _NEWLINE
    return 0


@kernel
def _copy_text(data, i, end, flags, all_line_ends, out, stop):
    while i < end:
        code, length = decode(data, i, end)
        byte = _replaced(flags[code], all_line_ends)
        if byte:
            out[stop] = byte
            stop += 1
        else:
            for k in range(length):
                out[stop + k] = data[i + k]
            stop += length
        i += length
    return stop


@kernel
def _copy_words(data, i, end, flags, longest, strings, manner, out, stop):
    first_stop = stop
    between = _SPACE  # the strongest separator since the last word that was kept
    while i < end:
        byte, length = _separator(data, i, end, flags, manner.all_line_ends)
        if byte:
            if byte == _NEWLINE or (byte == _TAB and between == _SPACE):
                between = byte
            i += length
            continue
        start = i
        while i < end:
            byte, length = _separator(data, i, end, flags, manner.all_line_ends)
            if byte:
                break
            i += length
        if not _is_wanted(data, start, i, flags, longest, strings, manner):
            continue
        if stop > first_stop:
            out[stop] = between
            stop += 1
        between = _SPACE
        for k in range(i - start):
            out[stop + k] = data[start + k]
        stop += i - start
    return stop


@inlined
def _separator(data, i, end, flags, all_line_ends):
    """The space, tab or newline that the character at byte i is or becomes (0: it is none), and its length."""
    code, length = decode(data, i, end)
    if (code == _NEWLINE) | (code == _TAB):
        return code, length
    return _replaced(flags[code], all_line_ends), length


@kernel
def _is_wanted(data, start, end, flags, longest, strings, manner):
    first, last = start, end
    while first < last:
        code, length = decode(data, first, last)
        if not flags[code] & SPECIAL:
            break
        first += length
    while first < last:
        i = previous(data, first, last)
        if not flags[decode(data, i, last)[0]] & SPECIAL:
            break
        last = i
    if _is_longer(data, start, end, longest) and (first == last or _is_longer(data, first, last, longest)):
        return False
    if manner.whole_words:
        first, last = start, end
    for i in range(first, last):
        if strings.begins[data[i]] and _starts_unwanted(data, i, last, strings, manner.any_case):
            return False
    return True


@inlined
def _is_longer(data, i, end, longest):
    """Whether there are more than `longest` characters."""
    if end - i <= longest:
        return False
    characters = 0
    while i < end and characters <= longest:
        characters += (data[i] & 0xC0) != 0x80
        i += 1
    return characters > longest


@kernel
def _starts_unwanted(data, i, end, strings, any_case):
    """Whether one of the unwanted strings stands at byte i."""
    for k in range(len(strings.offsets) - 1):
        first, last = strings.offsets[k], strings.offsets[k + 1]
        if i + last - first > end:
            continue
        same = True
        for place in range(first, last):
            byte, other = data[i + place - first], strings.data[place]
            if any_case:
                byte, other = _lower(byte), _lower(other)
            if byte != other:
                same = False
                break
        if same:
            return True
    return False


@inlined
def _lower(byte):
    return byte | 0x20 if 65 <= byte <= 90 else byte
