# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The same measures as datatrove 0.10 takes them in its Gopher filters, for comparison with corpora filtered by it.

What differs from `measures`: lines and paragraphs are compared with their white space, and blank lines are lines too.
All denominators are the characters of the text with its white space. The top n-gram counts with the spaces between its
words as often as it occurs: overlaps twice, a single occurrence too. Duplicate n-grams are found from left to right,
skipping a duplicate once found, and compared without the spaces between their words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import Classes
from roots_pipeline.text.datatrove_lines import characters_in, copies_of_segments, count_lines, stripped
from roots_pipeline.text.hashes import hash_range
from roots_pipeline.text.measures import LONGEST_TEXT, MEASURES
from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.repetition import (
    LONGEST,
    LONGEST_TOP,
    bit_maps,
    find_pairs,
    join_neighbours,
    keep_repeated,
    most_frequent,
    number_pairs,
)
from roots_pipeline.text.scan import (
    ALPHABETIC_WORDS,
    CONTENT_CHARACTERS,
    CONTENT_WORDS,
    COUNTS,
    ELLIPSES,
    HASHES,
    WORDS,
    fitting_scratch,
    new_scratch,
    scan_text,
)
from roots_pipeline.text.stop_words import StopWords, count_stop_words
from roots_pipeline.text.tables import find, grown, is_half_full, is_taken, new_table, put, reusable, sized
from roots_pipeline.text.words import scan_word, skip_space


def measure_as_datatrove(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    classes: Classes,
    settings: npt.NDArray[np.uint8],
    stop_lists: npt.NDArray[np.int64],
    stops: StopWords,
) -> npt.NDArray[np.float64]:
    """The measures of each text: float64[len(MEASURES), texts]; arguments as in `measure_quality_and_repetition`.

    Words made of symbols only (characters without CONTENT) count in ratios, but not in word_count and mean_word_length.
    """
    out = np.zeros((len(MEASURES), len(offsets) - 1))
    _measure(data, offsets, classes, settings, stop_lists, stops.arrays(), out)
    return out


@allocating
def _measure(data, offsets, classes, settings, stop_lists, stops, out):
    scratch, table, stamp = new_scratch(1, 1), new_table(64), np.uint64(0)
    counts, tops = np.zeros(COUNTS, np.int64), np.zeros(LONGEST_TOP - 1)
    for text in range(len(offsets) - 1):
        start, end = offsets[text], min(offsets[text + 1], offsets[text] + LONGEST_TEXT)
        table = reusable(table)
        scratch = fitting_scratch(scratch, data, start, end, classes, settings[text])
        scan_text(data, start, end, classes, settings[text], scratch, counts)
        words, content = counts[WORDS], counts[CONTENT_WORDS]
        length = max(characters_in(data, start, end), 1)
        found = count_stop_words(scratch.words, words, stop_lists[text], stops, text)
        lines, bullets, ellipses = count_lines(data, start, end, classes)
        out[0, text] = content
        out[1, text] = counts[CONTENT_CHARACTERS] / max(content, 1)
        out[2, text] = counts[HASHES] / max(words, 1)
        out[3, text] = counts[ELLIPSES] / max(words, 1)
        out[4, text] = bullets / max(lines, 1)
        out[5, text] = ellipses / max(lines, 1)
        out[6, text] = counts[ALPHABETIC_WORDS] / max(words, 1)
        out[7, text] = found if stop_lists[text] >= 0 else np.nan

        stamp += np.uint64(1)
        copies, inside, segments, table = copies_of_segments(data, start, end, 1, table, stamp)
        out[8, text], out[9, text] = copies / segments, inside / length
        stamp += np.uint64(1)
        first, last = stripped(data, start, end, classes)
        copies, inside, segments, table = copies_of_segments(data, first, last, 2, table, stamp)
        out[10, text], out[11, text] = copies / segments, inside / length

        stamp, table = _measure_tops(scratch, words, table, stamp, tops)
        for n in range(2, LONGEST_TOP + 1):
            out[10 + n, text] = tops[n - 2] / length
        squeezed, starts = _without_space(data, start, end, classes, settings[text], words)
        for n in range(LONGEST_TOP + 1, LONGEST + 1):
            stamp += np.uint64(1)
            inside, table = _greedy_duplicates(squeezed, starts, scratch.before, words, n, table, stamp)
            out[10 + n, text] = inside / length


@allocating
def _measure_tops(scratch, words, table, stamp, out):
    """Characters of the most frequent 2-, 3- and 4-gram times its count, into `out`."""
    before, positions, numbers, counts = scratch.before, scratch.positions, scratch.numbers, scratch.counts
    once, twice = bit_maps(scratch, words)
    entries = find_pairs(scratch.words, words, once, twice, positions)
    stamp += np.uint64(1)
    distinct, table = number_pairs(scratch.words, positions, numbers, counts, entries, table, stamp)
    for n in range(2, LONGEST_TOP + 1):
        length = keep_repeated(positions, numbers, counts, entries)
        out[n - 2] = 0.0
        if length > 0:
            top = most_frequent(counts, distinct)
            out[n - 2] = (_size_of(positions, numbers, length, before, n, top) + n - 1) * counts[top]
        elif words >= n:
            out[n - 2] = before[n] + n - 1
        stamp += np.uint64(1)
        entries, distinct, table = join_neighbours(positions, numbers, counts, length, table, stamp)
    return stamp, table


@kernel
def _size_of(positions, numbers, length, before, n, number):
    for k in range(length):
        if numbers[k] == number:
            return before[positions[k] + n] - before[positions[k]]
    return 0


@allocating
def _without_space(data, start, end, classes, setting, words):
    """The bytes of all words without what lies between, and where each word starts in them (words + 1 entries)."""
    squeezed, starts = np.empty(end - start, np.uint8), np.zeros(words + 1, np.int32)
    _squeeze(data, start, end, classes, setting, squeezed, starts)
    return squeezed, starts


@kernel
def _squeeze(data, i, end, classes, setting, squeezed, starts):
    words = size = 0
    i, _ = skip_space(data, i, end, classes)
    while i < end:
        start = i
        i, _, _, _ = scan_word(data, i, end, classes, setting)
        for k in range(start, i):
            squeezed[size] = data[k]
            size += 1
        words += 1
        starts[words] = size
        i, _ = skip_space(data, i, end, classes)


@allocating
def _greedy_duplicates(squeezed, starts, before, words, n, table, stamp):
    """(characters of n-grams that occurred before, the table); after such an n-gram the search goes on behind it."""
    table, mask = sized(table, words)
    done = distinct = inside = 0
    while True:
        done, distinct, some = _find_some(squeezed, starts, before, words, n, table, mask, stamp, done, distinct)
        inside += some
        if done > words - n:
            return inside, table
        table, mask = grown(table, mask, stamp)


@kernel
def _find_some(squeezed, starts, before, words, n, table, mask, stamp, word, distinct):
    inside = 0
    while word <= words - n:
        if is_half_full(mask, distinct):
            break
        key = hash_range(squeezed, starts[word], starts[word + n])
        slot = find(table, mask, key, stamp)
        if is_taken(table, slot, stamp):
            inside += before[word + n] - before[word]
            word += n
        else:
            put(table, slot, key, stamp, 0)
            distinct += 1
            word += 1
    return word, distinct, inside
