"""What each Unicode character is, as one byte of flags per code point, and how UTF-8 becomes code points.

In: nothing but Python's `unicodedata`. Out: a table of 0x110000 flag bytes that every kernel looks characters up in. It
is built on first use (about 0.1 s) and kept for the life of the process; pages of unassigned planes are never touched.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined

Classes = npt.NDArray[np.uint8]

SPACE = 1  # str.isspace()
ALPHABETIC = 2  # str.isalpha()
CONTENT = 4  # not one of the characters that the caller calls symbols
UNSPACED = 8  # a letter of a script that is written without spaces between words
MARK = 16  # a combining mark: belongs to the letter before it
BULLET = 32  # one of the caller's bullets
SPECIAL = 64  # '#', '.' or '…': words with one of them are looked at twice
LINE_BREAK = 128  # ends a line for str.splitlines()

# Han, kana, Thai, Lao, Khmer and Myanmar: the blocks of The Unicode Standard whose letters are written without spaces.
UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3041, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar, extension B
    (0xAA60, 0xAA7F),  # Myanmar, extension A
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x1B000, 0x1B16F),  # kana supplements
    (0x20000, 0x323AF),  # Han, extensions B to H
)
# Nothing is assigned between these planes, so nothing there has a class.
_ASSIGNED = (range(0x33480), range(0xE0000, 0xE0200))
_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@lru_cache(maxsize=8)
def character_classes(bullets: str = "", symbols: str = "") -> Classes:
    """The flags of every code point, uint8[0x110000], read-only.

    `bullets` get BULLET; `symbols` lose CONTENT, which all other characters have and ASCII letters must keep.
    """
    table = _unicode_classes().copy()
    for character in bullets:
        table[ord(character)] |= BULLET
    for character in symbols:
        table[ord(character)] &= ~CONTENT & 0xFF
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1)
def _unicode_classes() -> Classes:
    table = np.full(0x110000, CONTENT, np.uint8)
    for code in (code for planes in _ASSIGNED for code in planes):
        character = chr(code)
        if character.isalpha():
            table[code] |= ALPHABETIC
        elif character.isspace():
            table[code] |= SPACE
        elif unicodedata.category(character)[0] == "M":
            table[code] |= MARK
    for first, last in UNSPACED_BLOCKS:
        block = table[first : last + 1]
        block[(block & ALPHABETIC) != 0] |= UNSPACED
    for character in "#.…":
        table[ord(character)] |= SPECIAL
    for character in _LINE_BREAKS:
        table[ord(character)] |= LINE_BREAK
    return table


@inlined
def decode(data, i, end):
    """The code point at byte i and its length in bytes; never reads at or beyond `end`.

    Arrow guarantees valid UTF-8. Bytes that are not (a stray or cut sequence) come out as one-byte code points, so that
    a scan always moves on and never leaves the text.
    """
    first = np.int64(data[i])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        if first >= 0xC0 and i + 2 <= end:
            return ((first & 0x1F) << 6) | (np.int64(data[i + 1]) & 0x3F), 2
    elif first < 0xF0:
        if i + 3 <= end:
            return (
                ((first & 0x0F) << 12) | ((np.int64(data[i + 1]) & 0x3F) << 6) | (np.int64(data[i + 2]) & 0x3F),
                3,
            )
    elif first < 0xF5 and i + 4 <= end:
        code = ((first & 0x07) << 18) | ((np.int64(data[i + 1]) & 0x3F) << 12)
        code |= ((np.int64(data[i + 2]) & 0x3F) << 6) | (np.int64(data[i + 3]) & 0x3F)
        if code < 0x110000:
            return code, 4
    return first, 1
