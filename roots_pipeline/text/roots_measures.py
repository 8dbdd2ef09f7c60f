# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The measures behind the filters of ROOTS, of many texts in one pass.

`measure_letters` looks at the characters of texts, `measure_words` at their words. Ratios over nothing are 0.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import allocating
from roots_pipeline.text.roots_lists import ListTables
from roots_pipeline.text.roots_ngrams import (
    AS_IS,
    FLAGGED_WORDS,
    LETTERS,
    SPECIALS,
    STOPS,
    UNITS,
    WORDS,
    Reader,
)
from roots_pipeline.text.roots_repetition import AT_LEAST, TOTAL, count_ngrams, new_room, new_seen, sum_of_largest
from roots_pipeline.text.roots_words import SPACED, WordRules

LETTER_MEASURES = ("character_repetition_ratio", "special_character_ratio")
WORD_MEASURES = ("number_of_words", "word_repetition_ratio", "stop_word_ratio", "flagged_word_ratio")
LONGEST_TEXT = 2**31 - 1  # bytes; what a longer text has beyond them is not looked at

Sizes = npt.NDArray[np.int64]


def measure_letters(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    rules: WordRules,
    lists: ListTables,
    sizes: Sizes,
    all_of_root: bool,
) -> npt.NDArray[np.float64]:
    """float64[len(LETTER_MEASURES), texts]: repetition of n-grams of `sizes[i]` characters, and special characters.

    The k largest of the N counts are set against all; k is the whole part of sqrt(N), and with `all_of_root` false no
    more than the n-grams that occur more than once.
    """
    out = np.zeros((len(LETTER_MEASURES), len(offsets) - 1))
    _measure_letters(data, offsets, rules, lists, sizes, all_of_root, out)
    return out


@allocating
def _measure_letters(data, offsets, rules, lists, sizes, all_of_root, out):
    room, seen, stamp = new_room(), new_seen(), np.uint64(0)
    for text in range(len(offsets) - 1):
        start, end = offsets[text], min(offsets[text + 1], offsets[text] + LONGEST_TEXT)
        reader = Reader(LETTERS, sizes[text], SPACED, -1, rules, lists)
        above, seen, stamp = count_ngrams(data, start, end, reader, room, seen, stamp)
        counts, tally = room.counts, room.tally
        k = int(math.sqrt(counts[AT_LEAST + 1]))
        if not all_of_root:
            k = min(k, counts[AT_LEAST + 2])
        if counts[TOTAL] > 0:
            out[0, text] = sum_of_largest(counts, above, k) / counts[TOTAL]
        if tally[UNITS] > 0:
            out[1, text] = tally[SPECIALS] / tally[UNITS]


def measure_words(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    rules: WordRules,
    lists: ListTables,
    sizes: Sizes,
    kinds: Sizes,
    listed: Sizes,
) -> npt.NDArray[np.float64]:
    """float64[len(WORD_MEASURES), texts]: what the words of text i, of kind `kinds[i]`, repeat and how many are listed.

    Repetition is that of n-grams of `sizes[i]` words; `listed[i]` is the list that words are looked up in, -1 for none.
    """
    out = np.zeros((len(WORD_MEASURES), len(offsets) - 1))
    _measure_words(data, offsets, rules, lists, sizes, kinds, listed, out)
    return out


@allocating
def _measure_words(data, offsets, rules, lists, sizes, kinds, listed, out):
    room, seen, stamp = new_room(), new_seen(), np.uint64(0)
    for text in range(len(offsets) - 1):
        start, end = offsets[text], min(offsets[text + 1], offsets[text] + LONGEST_TEXT)
        reader = Reader(WORDS, sizes[text], kinds[text], listed[text], rules, lists)
        _, seen, stamp = count_ngrams(data, start, end, reader, room, seen, stamp)
        counts, tally = room.counts, room.tally
        out[0, text] = tally[AS_IS]
        if counts[TOTAL] > 0:
            once = counts[AT_LEAST + 1] - counts[AT_LEAST + 2]
            out[1, text] = (counts[TOTAL] - once) / counts[TOTAL]
        if tally[UNITS] > 0:
            out[2, text] = min(tally[STOPS] / tally[UNITS], 1.0)
            out[3, text] = min(tally[FLAGGED_WORDS] / tally[UNITS], 1.0)
