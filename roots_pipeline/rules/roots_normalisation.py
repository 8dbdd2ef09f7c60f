"""The normal form in which the ROOTS filters give text to SentencePiece and KenLM.

Control characters are deleted, white space is cut off at both ends, letters are lower-cased (for words, not for
perplexity), spaces of all shapes become the space, digits become 0, punctuation becomes that of ASCII.

The published procedure deletes line ends and tabs with the control characters, so that the last word of a line and the
first of the next become one. With `glue_lines` false they become spaces instead.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import lru_cache

import numpy as np

from roots_pipeline.rules.presets import load_data
from roots_pipeline.rules.roots_data import space_like
from roots_pipeline.text.roots_characters import IGNORABLE, lower_case, roots_flags
from roots_pipeline.text.roots_words import (
    DELETED,
    DOTTED_I_WORDS,
    NO_WORD,
    SIGMA_WORD,
    TWO_SPACES,
    WordRules,
)

_CONTROL = (*range(32), *range(127, 160))
_LINE_ENDS = (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85)
_SPACE_PIECE = "▁"


def normalise(text: str, *, lower_case: bool, glue_lines: bool) -> str:
    """The normal form of a text."""
    text = text.translate(_controls(glue_lines)).strip()
    if lower_case:
        text = text.lower()
    return text.translate(_replacements())


@lru_cache
def _controls(glue_lines: bool) -> dict[int, str]:
    table = dict.fromkeys(_CONTROL, "")
    return table if glue_lines else table | dict.fromkeys(_LINE_ENDS, " ")


@lru_cache
def _replacements() -> dict[int, str]:
    """Spaces, then digits, then punctuation: the first to change a character decides, as none yields another's."""
    punctuation: dict[str, str] = load_data("roots_normalisation")["punctuation"]
    table = {ord(character): replacement for character, replacement in punctuation.items()}
    digits = (code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd")
    return table | dict.fromkeys(digits, "0") | dict.fromkeys(space_like(), " ")


@lru_cache(maxsize=4)
def word_rules(special: frozenset[int], glue_lines: bool) -> WordRules:
    """The tables for the kernels: special characters, and what normalisation makes of each character alone."""
    flags = roots_flags(special, space_like())
    lower = lower_case()
    single = np.array(lower)
    single[0x80:0xA0] = single[:0x20] = single[0x7F] = DELETED
    changed = {*special, *_controls(glue_lines), *_replacements(), 0x20, 0x130, 0x3A3}
    for code in changed | {int(code) for code in np.flatnonzero(np.isin(lower, list(special)))}:
        single[code] = _single_word(code, special, glue_lines)
    single_flags = np.array(flags)
    single_flags[single == DELETED] |= IGNORABLE
    for table in (single, single_flags):
        table.setflags(write=False)
    return WordRules(flags, lower, single, single_flags)


def _single_word(code: int, special: frozenset[int], glue_lines: bool) -> int:
    """What becomes of one character: the code point of a word, or a number from `text.roots_words`."""
    kept = chr(code).translate(_controls(glue_lines))
    if not kept:
        return DELETED
    if kept == "Σ":
        return SIGMA_WORD
    pieces = kept.lower().translate(_replacements()).replace(" ", _SPACE_PIECE)
    words = "".join(piece for piece in pieces if ord(piece) not in special)
    if not words:
        return NO_WORD
    if words == 2 * _SPACE_PIECE:
        return TWO_SPACES
    if words == "i\u0307":
        return DOTTED_I_WORDS
    return ord(words)
