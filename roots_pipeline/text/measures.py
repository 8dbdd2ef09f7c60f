# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""All quality and repetition measures of many texts in one pass.

`measure_quality_and_repetition` gives one row of numbers per measure. What the words of a text are and which stop words
belong to it are settings per text (`words.SPACED` or `words.CHARACTERS`; a `StopWords` list).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import Classes
from roots_pipeline.text.copies import count_copies
from roots_pipeline.text.memory import allocating
from roots_pipeline.text.repetition import measure_ngrams
from roots_pipeline.text.scan import (
    ALPHABETIC_WORDS,
    BULLET_LINES,
    CHARACTERS,
    COUNTS,
    ELLIPSES,
    ELLIPSIS_LINES,
    HASHES,
    LINES,
    WORDS,
    fitting_scratch,
    join_lines,
    new_scratch,
    scan_text,
)
from roots_pipeline.text.stop_words import StopWords, count_stop_words
from roots_pipeline.text.tables import new_table, reusable

MEASURES = (
    "word_count",
    "mean_word_length",
    "hash_to_word_ratio",
    "ellipsis_to_word_ratio",
    "bullet_line_fraction",
    "ellipsis_line_fraction",
    "alphabetic_word_fraction",
    "stop_word_count",
    "duplicate_line_fraction",
    "duplicate_line_character_fraction",
    "duplicate_paragraph_fraction",
    "duplicate_paragraph_character_fraction",
    "top_2_gram_character_fraction",
    "top_3_gram_character_fraction",
    "top_4_gram_character_fraction",
    "duplicate_5_gram_character_fraction",
    "duplicate_6_gram_character_fraction",
    "duplicate_7_gram_character_fraction",
    "duplicate_8_gram_character_fraction",
    "duplicate_9_gram_character_fraction",
    "duplicate_10_gram_character_fraction",
)
LONGEST_TEXT = 2**31 - 1  # bytes; what a longer text has beyond them is not looked at


def measure_quality_and_repetition(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    classes: Classes,
    settings: npt.NDArray[np.uint8],
    stop_lists: npt.NDArray[np.int64],
    stops: StopWords,
    first_copy_too: bool = False,
) -> npt.NDArray[np.float64]:
    """The measures of each text: float64[len(MEASURES), texts].

    `settings[i]` says what the words of text i are, `stop_lists[i]` which list of `stops` it is searched for (-1: none,
    and its stop_word_count is NaN). Ratios over nothing are 0. Fractions of characters are fractions of the characters
    that are not white space. `first_copy_too` counts the first copy of whatever is repeated as a duplicate, too.
    """
    out = np.zeros((len(MEASURES), len(offsets) - 1))
    _measure(data, offsets, classes, settings, stop_lists, stops.arrays(), first_copy_too, out)
    return out


@allocating
def _measure(data, offsets, classes, settings, stop_lists, stops, first_too, out):
    scratch, table, stamp = new_scratch(1, 1), new_table(64), np.uint64(0)
    counts, covered = np.zeros(COUNTS, np.int64), np.zeros(9)
    for text in range(len(offsets) - 1):
        start, end = offsets[text], min(offsets[text + 1], offsets[text] + LONGEST_TEXT)
        table = reusable(table)
        scratch = fitting_scratch(scratch, data, start, end, classes, settings[text])
        scan_text(data, start, end, classes, settings[text], scratch, counts)

        stamp += np.uint64(1)
        lines = counts[LINES]
        copies, inside, table = count_copies(scratch.lines, scratch.sizes, lines, table, stamp, first_too)
        paragraphs = join_lines(scratch.lines, scratch.sizes, scratch.closes, lines)
        stamp += np.uint64(1)
        more, more_inside, table = count_copies(scratch.lines, scratch.sizes, paragraphs, table, stamp, first_too)

        stamp += np.uint64(1)
        words = counts[WORDS]
        found = count_stop_words(scratch.words, words, stop_lists[text], stops, text)
        stamp, table = measure_ngrams(scratch, words, table, stamp, first_too, covered)

        # Rows in the order of MEASURES.
        words, characters = max(words, 1), max(counts[CHARACTERS], 1)
        lines, paragraphs = max(lines, 1), max(paragraphs, 1)
        out[0, text] = counts[WORDS]
        out[1, text] = counts[CHARACTERS] / words
        out[2, text] = counts[HASHES] / words
        out[3, text] = counts[ELLIPSES] / words
        out[4, text] = counts[BULLET_LINES] / lines
        out[5, text] = counts[ELLIPSIS_LINES] / lines
        out[6, text] = counts[ALPHABETIC_WORDS] / words
        out[7, text] = found if stop_lists[text] >= 0 else np.nan
        out[8, text] = copies / lines
        out[9, text] = inside / characters
        out[10, text] = more / paragraphs
        out[11, text] = more_inside / characters
        for k in range(9):
            out[12 + k, text] = covered[k] / characters
