# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""What the ROOTS filters need to know of every character, and lower case as `str.lower` has it.

In: the set of special characters and the spaces of the published filters, as data. Out: a table of flag bytes and a
table of lower-case letters, one entry for each of the 0x110000 code points, for the kernels of ROOTS.

Lower case is one character for one, with two exceptions that kernels must know: capital I with dot (U+0130) becomes
two characters, and capital sigma (U+03A3) becomes a final sigma at the end of a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import decode
from roots_pipeline.text.memory import inlined, kernel

Flags = npt.NDArray[np.uint8]
Lower = npt.NDArray[np.uint32]

SPECIAL = 1  # a special character
SPECIAL_LOWERED = 2  # lower-cased, it is a special character
CHANGES = 4  # beyond ASCII, and lower case changes it
CASED = 8  # a letter with case (the property Cased of Unicode)
IGNORABLE = 16  # between letters it does not matter to their case (the property Case_Ignorable)
BLANK = 32  # str.isspace()
SPACE_LIKE = 64  # a space in another shape
LINE_END = 128  # ends a line although it is no newline

DOTTED_I = 0x130
SIGMA, SMALL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C3, 0x3C2
# Nothing is assigned between these planes, so nothing there has a class.
_ASSIGNED = (range(0x33480), range(0xE0000, 0xE0200))
_LINE_ENDS = "\r\v\f\x85\u2028\u2029"


@lru_cache(maxsize=4)
def roots_flags(special: frozenset[int], spaces: frozenset[int]) -> Flags:
    """The flags of every code point: uint8[0x110000], read-only. The space itself is always SPACE_LIKE."""
    flags = _unicode_flags().copy()
    for code in special:
        flags[code] |= SPECIAL
    lower = lower_case()
    lowered_special = np.isin(lower, np.array(sorted(special), np.uint32))
    lowered_special[DOTTED_I] = False
    flags[lowered_special] |= SPECIAL_LOWERED
    for code in {0x20, *spaces}:
        flags[code] |= SPACE_LIKE
    flags.setflags(write=False)
    return flags


@lru_cache(maxsize=1)
def lower_case() -> Lower:
    """The lower case of every code point (of U+0130: itself): uint32[0x110000], read-only."""
    table = np.arange(0x110000, dtype=np.uint32)
    for code in _assigned():
        lowered = chr(code).lower()
        if len(lowered) == 1:
            table[code] = ord(lowered)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1)
def _unicode_flags() -> Flags:
    """The flags that do not depend on any list. Python shows its case properties only in how it lower-cases sigma."""
    flags = np.zeros(0x110000, np.uint8)
    for code in _assigned():
        character = chr(code)
        if (character + "Σ").lower()[-1] == "ς":
            flags[code] |= CASED
        elif ("a" + character + "Σ").lower()[-1] == "ς":
            flags[code] |= IGNORABLE
        if code >= 128 and character.lower() != character:
            flags[code] |= CHANGES
        if character.isspace():
            flags[code] |= BLANK
    for character in _LINE_ENDS:
        flags[ord(character)] |= LINE_END
    return flags


def _assigned() -> Iterable[int]:
    return (code for plane in _ASSIGNED for code in plane if not 0xD800 <= code < 0xE000)


@inlined
def previous(data, start, end):
    """Where the character that ends at byte `end` starts; never before `start`, which is less than `end`."""
    i = end - 1
    while i > start and data[i] & 0xC0 == 0x80 and end - i < 4:
        i -= 1
    return i


@kernel
def lower_sigma(data, start, at, end, flags):
    """The lower case of the capital sigma (two bytes) at byte `at` of the text `data[start:end]`.

    Final where a cased letter comes before it and none after it, ignorable characters aside (Unicode, Final_Sigma).
    """
    kind, i = 0, at
    while i > start:
        i = previous(data, start, i)
        kind = flags[decode(data, i, at)[0]]
        if not kind & IGNORABLE:
            break
    if not kind & CASED:
        return SMALL_SIGMA
    i, kind = at + 2, 0
    while i < end:
        code, length = decode(data, i, end)
        kind = flags[code]
        if not kind & IGNORABLE:
            break
        i += length
    return SMALL_SIGMA if kind & CASED else FINAL_SIGMA


@inlined
def to_utf8(code):
    """A code point as UTF-8: (bytes, the first one lowest, as uint64; how many)."""
    if code < 0x80:
        return np.uint64(code), 1
    last = 0x80 | (code & 0x3F)
    if code < 0x800:
        return np.uint64(0xC0 | code >> 6 | last << 8), 2
    middle = 0x80 | (code >> 6 & 0x3F)
    if code < 0x10000:
        return np.uint64(0xE0 | code >> 12 | middle << 8 | last << 16), 3
    second = 0x80 | (code >> 12 & 0x3F)
    return np.uint64(0xF0 | code >> 18 | second << 8 | middle << 16 | last << 24), 4
