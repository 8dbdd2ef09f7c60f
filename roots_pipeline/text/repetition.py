# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Repeated n-grams of words, exact, in a time that shrinks with n.

An n-gram can only repeat where both (n-1)-grams inside it repeat. So each pass works on a list of the positions whose
(n-1)-gram occurs more than once, joins neighbours into n-grams, numbers them in order of first occurrence, counts them,
and keeps those that occur more than once. 2-grams are told apart by a 64-bit hash of their words; longer n-grams by the
numbers of their two (n-1)-grams, which is exact.

The lists are `positions` and `numbers`, one entry an n-gram, and `counts`, one entry a distinct n-gram (int32, changed
in place); `before[w]` is the number of word characters before word w.
"""

from __future__ import annotations

import numpy as np

from roots_pipeline.text.hashes import mix, pair_key
from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.tables import find, grown, is_half_full, is_taken, put, sized, value_at

LONGEST_TOP = 4  # 2- to 4-grams: the most frequent one; longer ones: all duplicates
LONGEST = 10
_HALF = np.uint64(32)
_ONE, _SIX, _SIXTY_THREE = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel
def find_pairs(words, length, once, twice, positions):
    """Positions of all 2-grams that may occur more than once; returns how many there are.

    `once` and `twice` are bit maps. Different 2-grams may share a bit, but one whose bit was set once only does not
    repeat. No branch here depends on the words, so the processor never guesses wrong, and most 2-grams end here.
    """
    once[:] = np.uint64(0)
    twice[:] = np.uint64(0)
    mask = np.uint64(once.size - 1)
    for k in range(length - 1):
        key = pair_key(words[k], words[k + 1])
        place, bit = (key >> _SIX) & mask, _ONE << (key & _SIXTY_THREE)
        twice[place] |= once[place] & bit
        once[place] |= bit
    kept = 0
    for k in range(length - 1):
        key = pair_key(words[k], words[k + 1])
        positions[kept] = k
        kept += np.int64((twice[(key >> _SIX) & mask] >> (key & _SIXTY_THREE)) & _ONE)
    return kept


@allocating
def number_pairs(words, positions, numbers, counts, length, table, stamp):
    """Number and count the 2-grams at `positions`: (distinct 2-grams, the table, which may have grown)."""
    table, mask = sized(table, length)
    done = distinct = 0
    while True:
        done, distinct = _number_some(words, positions, numbers, counts, length, table, mask, stamp, done, distinct)
        if done == length:
            return distinct, table
        table, mask = grown(table, mask, stamp)


@kernel
def _number_some(words, positions, numbers, counts, length, table, mask, stamp, done, distinct):
    for k in range(done, length):
        if is_half_full(mask, distinct):
            return k, distinct
        start = positions[k]
        key = pair_key(words[start], words[start + 1])
        slot = find(table, mask, key, stamp)
        if is_taken(table, slot, stamp):
            number = value_at(table, slot)
            counts[number] += 1
        else:
            number = distinct
            put(table, slot, key, stamp, number)
            counts[number] = 1
            distinct += 1
        numbers[k] = number
    return length, distinct


@kernel
def keep_repeated(positions, numbers, counts, length):
    """Keep the entries whose n-gram occurs more than once; returns how many are left."""
    kept = 0
    for k in range(length):
        positions[kept] = positions[k]
        numbers[kept] = numbers[k]
        kept += counts[numbers[k]] > 1
    return kept


@allocating
def join_neighbours(positions, numbers, counts, length, table, stamp):
    """From the entries of repeated (n-1)-grams to those of all n-grams that may repeat.

    Returns the number of entries, the number of distinct n-grams, and the table, which may have grown.
    """
    table, mask = sized(table, length)
    done = entries = distinct = 0
    while True:
        done, entries, distinct = _join_some(
            positions, numbers, counts, length, table, mask, stamp, done, entries, distinct
        )
        if done >= length - 1:
            return entries, distinct, table
        table, mask = grown(table, mask, stamp)


@kernel
def _join_some(positions, numbers, counts, length, table, mask, stamp, done, entries, distinct):
    for k in range(done, length - 1):
        if positions[k + 1] != positions[k] + 1:
            continue
        if is_half_full(mask, distinct):
            return k, entries, distinct
        key = mix((np.uint64(numbers[k]) << _HALF) | np.uint64(numbers[k + 1]))
        slot = find(table, mask, key, stamp)
        if is_taken(table, slot, stamp):
            number = value_at(table, slot)
            counts[number] += 1
        else:
            number = distinct
            put(table, slot, key, stamp, number)
            counts[number] = 1
            distinct += 1
        positions[entries] = positions[k]
        numbers[entries] = number
        entries += 1
    return length, entries, distinct


@kernel
def most_frequent(counts, distinct):
    """The number counted most often; the one that occurs first if several are."""
    best = 0
    for number in range(1, distinct):
        if counts[number] > counts[best]:
            best = number
    return best


@kernel
def characters_of_one(positions, numbers, length, before, n, number):
    """Characters inside the occurrences of one n-gram, each character once."""
    covered = end = np.int64(0)
    for k in range(length):
        if numbers[k] == number:
            start = np.int64(positions[k])
            covered += before[start + n] - before[max(start, end)]
            end = start + n
    return covered


@kernel
def characters_of_duplicates(positions, numbers, length, before, n, first_too):
    """Characters inside n-grams that occurred before (or, with `first_too`, that occur more than once), each once."""
    covered = end = np.int64(0)
    highest = -1
    for k in range(length):
        is_first = numbers[k] > highest  # numbers are given in order of first occurrence
        highest = max(highest, numbers[k])
        if not is_first or first_too:
            start = np.int64(positions[k])
            covered += before[start + n] - before[max(start, end)]
            end = start + n
    return covered


@allocating
def bit_maps(scratch, words):
    """Two bit maps of at least eight bits a word, in the room of the scratch."""
    size = 16
    while size < words // 8:
        size *= 2
    return scratch.once[:size], scratch.twice[:size]


@allocating
def measure_ngrams(scratch, words, table, stamp, first_too, out):
    """Characters inside the top 2-, 3- and 4-gram and inside duplicate 5- to 10-grams, into `out[0:9]`.

    The scratch holds the words of a scan. The top n-gram counts if it occurs at least twice. Uses `stamp` and the
    stamps after it; returns the last one and the table.
    """
    before, positions, numbers, counts = scratch.before, scratch.positions, scratch.numbers, scratch.counts
    out[:] = 0.0
    once, twice = bit_maps(scratch, words)
    entries = find_pairs(scratch.words, words, once, twice, positions)
    distinct, table = number_pairs(scratch.words, positions, numbers, counts, entries, table, stamp)
    length = keep_repeated(positions, numbers, counts, entries)
    n = 2
    while length > 0 and n <= LONGEST:
        if n <= LONGEST_TOP:
            top = most_frequent(counts, distinct)
            out[n - 2] = characters_of_one(positions, numbers, length, before, n, top)
        else:
            out[n - 2] = characters_of_duplicates(positions, numbers, length, before, n, first_too)
        n += 1
        stamp += np.uint64(1)
        entries, distinct, table = join_neighbours(positions, numbers, counts, length, table, stamp)
        length = keep_repeated(positions, numbers, counts, entries)
    return stamp, table
