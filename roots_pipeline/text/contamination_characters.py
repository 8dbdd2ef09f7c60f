# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How characters are folded before texts are compared with evaluation items: one table over all code points.

Two texts that differ in case, accents, punctuation, width of characters, kind of digits or invisible characters are the
same words. What becomes of a character:

- Letters, numbers and marks make words, in the form `fold` gives them: compatibility decomposition (NFKD), accents and
  other optional signs left out, case folded, decimal digits as 0 to 9. Some become two or three characters (ß, ﬁ, the
  syllables of Korean).
- Optional signs, format characters (soft hyphen, joiners) and the Arabic tatweel are left out.
- Everything else separates words, and so does markup (`contamination_words`). Some of it also is a border, the edge of
  a sentence, line, cell or quotation: line breaks and all punctuation and symbols but apostrophes, hyphens, commas and
  underscores.

A letter of a script that is written without spaces is a word of its own, together with the marks behind it. Such words
are smaller: a Han character counts as 1/2 word, any other such letter as 1/4.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from roots_pipeline.text.characters import UNSPACED_BLOCKS

CODE = 0x1FFFFF  # the folded code point, or the row of `longer`
LETTER = 1 << 21
MARK = 1 << 22
ALONE = 1 << 23  # a word of its own
HAN = 1 << 24
LONGER = 1 << 25
SEPARATOR = 1 << 26
BORDER = 1 << 27
IGNORED = 1 << 28

# Sizes of words in twelfths.
WORD_SIZE, HAN_SIZE, LETTER_SIZE = 12, 6, 3

NO_BORDER = "'’‘ʼ`´-‐‑,،、_"
_TATWEEL = 0x0640
_DOTLESS_I = 0x0131  # its capital is the Latin I
_ASSIGNED = (range(0x33480), range(0xE0000, 0xE0200))
# Most of all characters; they are folded to themselves.
_HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0x20000, 0x2A6E0))
_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


class Folding(NamedTuple):
    """The tables of this module, as kernels take them."""

    table: Any  # uint32[0x110000]
    longer: Any  # uint32[rows, 3]: what a LONGER character becomes, 0 for nothing


@lru_cache(maxsize=1)
def folding() -> Folding:
    """The tables; built on first use (a fifth of a second) and kept for the life of the process."""
    table = np.full(0x110000, SEPARATOR, np.uint32)
    for block in _HAN:
        table[block.start : block.stop] = np.arange(block.start, block.stop) | (LETTER | ALONE | HAN)
    unspaced = np.zeros(len(table), np.bool_)
    for first, last in UNSPACED_BLOCKS:
        unspaced[first : last + 1] = True
    longer: list[list[int]] = []
    words: list[tuple[str, str]] = []
    for code in (code for planes in _ASSIGNED for code in planes if table[code] == SEPARATOR):
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] in "LNM":
            words.append((character, category))
        elif category == "Cf":
            table[code] = IGNORED
        elif (category[0] in "PS" and character not in NO_BORDER) or character in _LINE_BREAKS:
            table[code] |= BORDER
    for (character, category), itself in zip(words, _stay([character for character, _ in words]), strict=True):
        flags = LETTER if category[0] == "L" else MARK if category[0] == "M" else 0
        if unspaced[ord(character)] and (flags == LETTER or category == "Nl"):
            flags |= ALONE
            if unicodedata.name(character, "").startswith(("CJK", "IDEOGRAPHIC")):
                flags |= HAN
        table[ord(character)] = _word_character(character if itself else fold(character), flags, longer)
    rows = np.array(longer, np.uint32).reshape(-1, 3)
    table.setflags(write=False)
    rows.setflags(write=False)
    return Folding(table, rows)


def _stay(characters: list[str]) -> list[bool]:
    """Whether each character surely is what `fold` makes of it; asked of all at once, which most are spared by."""
    joined = unicodedata.normalize("NFKD", "\n".join(characters)).casefold()
    return [
        one == other and not _optional(one) and one == _digit(one) and ord(one) not in (_TATWEEL, _DOTLESS_I)
        for one, other in zip(characters, joined.split("\n"), strict=True)
    ]


def _word_character(folded: str, flags: int, longer: list[list[int]]) -> int:
    if not folded:
        return IGNORED
    if len(folded) == 1:
        return ord(folded) | flags
    longer.append([*map(ord, folded), 0, 0][:3])
    return (len(longer) - 1) | flags | LONGER


def fold(character: str) -> str:
    """The characters that one letter, number or mark becomes, at most three; empty if it is left out."""
    if ord(character) == _TATWEEL or _optional(character):
        return ""
    if ord(character) == _DOTLESS_I:
        return "i"
    parts = unicodedata.normalize("NFKD", character).casefold()
    parts = unicodedata.normalize("NFKD", parts)
    kept = "".join(_digit(part) for part in parts if not _optional(part))
    if not 1 <= len(kept) <= 3 or any(unicodedata.category(part)[0] not in "LNM" for part in kept):
        return _digit(character)
    return kept


def _optional(character: str) -> bool:
    """Accents, points, tones and vowel signs that texts often go without, by their combining class."""
    return unicodedata.combining(character) == 7 or unicodedata.combining(character) >= 10


def _digit(character: str) -> str:
    value = unicodedata.decimal(character, None)
    return character if value is None else str(value)
