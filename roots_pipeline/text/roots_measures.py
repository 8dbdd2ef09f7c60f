# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The measures behind the filters of ROOTS, of many texts in one pass.

`measure_letters` looks at the characters of texts, `measure_words` at their words. Ratios over nothing are 0. Both
take `largest_part`, which bounds the memory that a text needs and has no influence on what comes out.
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
    TALLY,
    UNITS,
    WORDS,
    Reader,
)
from roots_pipeline.text.roots_repetition import (
    AT_LEAST,
    LARGEST_PART,
    TOTAL,
    count_ngrams,
    new_room,
    new_seen,
    sum_of_largest,
)
from roots_pipeline.text.roots_words import SPACED, WordRules

LETTER_MEASURES = ("character_repetition_ratio", "special_character_ratio")
WORD_MEASURES = ("number_of_words", "word_repetition_ratio", "stop_word_ratio", "flagged_word_ratio")
LONGEST_TEXT = 2**31 - 1  # bytes; what a longer text has beyond them is not looked at

# Rows of counts of a text: the tally of its reading, then these.
_NGRAMS, _DIFFERENT, _REPEATED, _LARGEST = range(TALLY, TALLY + 4)

Numbers = npt.NDArray[np.int64]
Ratios = npt.NDArray[np.float64]


def measure_letters(
    data: npt.NDArray[np.uint8],
    offsets: Numbers,
    rules: WordRules,
    lists: ListTables,
    sizes: Numbers,
    all_of_root: bool,
    largest_part: int = LARGEST_PART,
) -> tuple[Ratios, ...]:
    """LETTER_MEASURES of each text: repetition of n-grams of `sizes[i]` characters, and special characters.

    The k largest of the N counts are set against all; k is the whole part of sqrt(N), and with `all_of_root` false no
    more than the n-grams that occur more than once.
    """
    counts = np.zeros((TALLY + 4, len(offsets) - 1), np.int64)
    kinds, listed = np.full(len(sizes), SPACED), np.full(len(sizes), -1)
    _count_texts(data, offsets, LETTERS, rules, lists, sizes, kinds, listed, all_of_root, largest_part, counts)
    return _ratio(counts[_LARGEST], counts[_NGRAMS]), _ratio(counts[SPECIALS], counts[UNITS])


def measure_words(
    data: npt.NDArray[np.uint8],
    offsets: Numbers,
    rules: WordRules,
    lists: ListTables,
    sizes: Numbers,
    kinds: Numbers,
    listed: Numbers,
    largest_part: int = LARGEST_PART,
) -> tuple[Ratios, ...]:
    """WORD_MEASURES of each text: what the words of text i, of kind `kinds[i]`, repeat and how many are listed.

    Repetition is that of n-grams of `sizes[i]` words; `listed[i]` is the list that words are looked up in, -1 for none.
    """
    counts = np.zeros((TALLY + 4, len(offsets) - 1), np.int64)
    _count_texts(data, offsets, WORDS, rules, lists, sizes, kinds, listed, False, largest_part, counts)
    once = counts[_DIFFERENT] - counts[_REPEATED]
    return (
        counts[AS_IS].astype(np.float64),
        _ratio(counts[_NGRAMS] - once, counts[_NGRAMS]),
        np.minimum(_ratio(counts[STOPS], counts[UNITS]), 1.0),
        np.minimum(_ratio(counts[FLAGGED_WORDS], counts[UNITS]), 1.0),
    )


def _ratio(part: Numbers, whole: Numbers) -> Ratios:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


@allocating
def _count_texts(data, offsets, unit, rules, lists, sizes, kinds, listed, all_of_root, largest_part, out):
    room, seen, stamp = new_room(), new_seen(), np.uint64(0)
    for text in range(len(offsets) - 1):
        start, end = offsets[text], min(offsets[text + 1], offsets[text] + LONGEST_TEXT)
        reader = Reader(unit, sizes[text], kinds[text], listed[text], rules, lists)
        above, seen, stamp = count_ngrams(data, start, end, reader, room, seen, stamp, largest_part)
        counts = room.counts
        k = int(math.sqrt(counts[AT_LEAST + 1]))
        if not all_of_root:
            k = min(k, counts[AT_LEAST + 2])
        out[:TALLY, text] = room.tally
        out[_NGRAMS, text] = counts[TOTAL]
        out[_DIFFERENT, text] = counts[AT_LEAST + 1]
        out[_REPEATED, text] = counts[AT_LEAST + 2]
        out[_LARGEST, text] = sum_of_largest(counts, above, k)
