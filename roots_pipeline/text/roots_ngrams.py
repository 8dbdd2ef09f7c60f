# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""N-grams of the characters and of the words of a text, as 64-bit keys, read in blocks.

`begin`, then `read_ngrams` until it has reached the end. On the way, whatever else the filters count of characters and
words goes into the tally of the reading.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roots_pipeline.text.characters import decode
from roots_pipeline.text.hashes import MULTIPLIER, mix
from roots_pipeline.text.memory import inlined, kernel, load_eight
from roots_pipeline.text.roots_characters import SPECIAL
from roots_pipeline.text.roots_lists import LARGEST_GROUP, count_listed
from roots_pipeline.text.roots_words import CHARACTERS, inner_text, read_characters, read_spaced

LETTERS = 0  # n-grams of the characters of the text as it is
WORDS = 1
LONGEST = 64  # units in an n-gram
BLOCK = 1 << 18  # keys, and words, read at a time

# Positions in the tally: first the state of the reading, then what has been counted since its beginning.
_FIRST, _HELD = range(2)
UNITS, SPECIALS, AS_IS, STOPS, FLAGGED_WORDS = range(2, 7)  # UNITS: characters, or words in lower case
TALLY = 7

_TOP_BITS = np.uint64(0x8080808080808080)


class Reader(NamedTuple):
    """What is read of a text: its n-grams and what is looked up on the way."""

    unit: int  # LETTERS or WORDS
    size: int  # units in an n-gram, 1 to LONGEST
    words: int  # SPACED or CHARACTERS
    listed: int  # the list that words are looked up in, -1 for none
    rules: Any  # WordRules
    lists: Any  # ListTables


@kernel
def begin(data, start, end, reader, tally):
    """Clear the tally for a reading of `data[start:end]`: the bytes between which n-grams are read."""
    tally[:] = 0
    if reader.unit == WORDS and reader.words == CHARACTERS:
        start, end = inner_text(data, start, end, reader.rules)
    tally[_FIRST] = start
    return start, end


@kernel
def read_ngrams(data, i, end, reader, room, keys):
    """Read on from byte i: (byte where it stopped, how many n-grams are in `keys` now).

    `room` keeps the last units from call to call.
    """
    tally = room.tally
    held = tally[_HELD]
    if reader.unit == LETTERS:
        i, count, specials = _read_letters(data, i, end, reader.rules.flags, room.letters, held)
        tally[UNITS] += count - held
        tally[SPECIALS] += specials
        grams = _join(room.letters, held, count, reader.size, keys)
        tally[_HELD] = _keep_last(room.letters, count, reader.size - 1)
        return i, grams
    words = room.words
    if reader.words == CHARACTERS:
        i, count, as_is = read_characters(data, tally[_FIRST], i, end, reader.rules, words, held)
    else:
        i, count, as_is = read_spaced(data, i, end, reader.rules, words, held)
    tally[UNITS] += count - held
    tally[AS_IS] += as_is
    if reader.listed >= 0:
        stops, flagged = count_listed(words, held, count, reader.listed, reader.lists)
        tally[STOPS] += stops
        tally[FLAGGED_WORDS] += flagged
    grams = _join(words, held, count, reader.size, keys)
    tally[_HELD] = _keep_last(words, count, max(reader.size, LARGEST_GROUP) - 1)
    return i, grams


@kernel
def _read_letters(data, i, end, flags, letters, count):
    """Decode characters behind `count` ones: (byte where it stopped, characters in `letters`, special ones of them)."""
    specials = 0
    last = letters.size - 8
    while i < end and count <= last:
        if i + 8 <= end and not load_eight(data, i) & _TOP_BITS:
            for k in range(8):
                letters[count + k] = data[i + k]
                specials += flags[data[i + k]] & SPECIAL
            count += 8
            i += 8
        else:
            code, length = decode(data, i, end)
            letters[count] = code
            specials += flags[code] & SPECIAL
            count += 1
            i += length
    return i, count, specials


@inlined
def _join(units, held, count, size, keys):
    """The keys of the n-grams that end behind unit `held`: a polynomial of their units, well mixed.

    Each key follows from the one before it, so that the processor waits for every product: two halves in step hide it.
    """
    first = max(held, size - 1)
    grams = max(count - first, 0)
    half = grams // 2
    power = np.uint64(1)
    for _ in range(size):
        power *= MULTIPLIER
    if half:
        left, right = _polynomial(units, first, size), _polynomial(units, first + half, size)
        keys[0], keys[half] = mix(left), mix(right)
        for k in range(1, half):
            left = _shifted(left, units, first + k, size, power)
            right = _shifted(right, units, first + half + k, size, power)
            keys[k], keys[half + k] = mix(left), mix(right)
    if grams & 1:
        keys[grams - 1] = mix(_polynomial(units, count - 1, size))
    return grams


@inlined
def _polynomial(units, last, size):
    """The polynomial of the n-gram that ends with unit `last`."""
    value = np.uint64(0)
    for k in range(last - size + 1, last + 1):
        value = value * MULTIPLIER + np.uint64(units[k])
    return value


@inlined
def _shifted(value, units, k, size, power):
    """The polynomial of an n-gram that ends with unit k, from that of the n-gram before it."""
    return value * MULTIPLIER + (np.uint64(units[k]) - np.uint64(units[k - size]) * power)


@inlined
def _keep_last(units, count, wanted):
    """Move the last units to the front; returns how many."""
    kept = min(count, wanted)
    for k in range(kept):
        units[k] = units[count - kept + k]
    return kept
