# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""One scan over a text: its words, what they are made of, its lines and paragraphs.

A line is what lies between newlines, if it has a word; a paragraph is a run of lines with no empty line between them. A
line or paragraph is the sequence of its words (white space does not matter) and as long as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roots_pipeline.text.characters import ALPHABETIC, BULLET, CONTENT, SPECIAL, decode
from roots_pipeline.text.hashes import extend, mix
from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.words import count_special, ends_in_ellipsis, scan_word, skip_space

# Positions in the counts of a scan.
WORDS, CHARACTERS, CONTENT_WORDS, CONTENT_CHARACTERS, ALPHABETIC_WORDS = range(5)
HASHES, ELLIPSES, LINES, BULLET_LINES, ELLIPSIS_LINES = range(5, 10)
COUNTS = 10

_SMALLEST = 1 << 14  # a new scratch has room for so many words and lines
_UNCOUNTED = 1 << 19
_RELEASE = 1 << 20  # a scratch with more room than this is given back after the text that needed it
_START_OF_LINE = np.uint64(0x13198A2E03707344)
_START_OF_PARAGRAPH = np.uint64(0xA4093822299F31D0)


class Scratch(NamedTuple):
    """Room for one text. Word w has the hash `words[w]` and `before[w]` word characters before it.

    Line l has the hash `lines[l]`, `sizes[l]` word characters, and `closes[l]` says whether it ends a paragraph.
    `positions`, `numbers` and `counts` belong to `repetition`.
    """

    words: Any  # uint64
    before: Any  # int32, one more than words
    positions: Any  # int32
    numbers: Any  # int32
    counts: Any  # int32
    once: Any  # uint64
    twice: Any  # uint64
    lines: Any  # uint64
    sizes: Any  # int32
    closes: Any  # bool


@allocating
def new_scratch(words, lines):
    """A scratch with room for a text of so many words and lines."""
    return Scratch(
        np.empty(words, np.uint64),
        np.empty(words + 1, np.int32),
        np.empty(words, np.int32),
        np.empty(words, np.int32),
        np.empty(words, np.int32),
        np.empty(words // 4 + 16, np.uint64),
        np.empty(words // 4 + 16, np.uint64),
        np.empty(lines, np.uint64),
        np.empty(lines, np.int32),
        np.empty(lines, np.bool_),
    )


@allocating
def fitting_scratch(scratch, data, i, end, classes, setting):
    """The scratch if the text fits, else one that it fits; a huge one is exchanged for a small one.

    A word or line needs at least two bytes. Room that is never touched costs no memory, so only the words of a long
    text are counted first.
    """
    words = lines = (end - i) // 2 + 1
    if words > _UNCOUNTED:
        words, lines = _count_words_and_lines(data, i, end, classes, setting)
    room, line_room = scratch.words.size, scratch.lines.size
    if words <= room <= _RELEASE and lines <= line_room <= _RELEASE:
        return scratch
    return new_scratch(max(_SMALLEST, words), max(_SMALLEST, lines))


@kernel
def _count_words_and_lines(data, i, end, classes, setting):
    words = lines = 0
    i, _ = skip_space(data, i, end, classes)
    while i < end:
        i, _, _, _ = scan_word(data, i, end, classes, setting)
        i, newlines = skip_space(data, i, end, classes)
        words += 1
        lines += newlines > 0 or i >= end
    return words, lines


@kernel
def scan_text(data, i, end, classes, setting, scratch, counts):
    """Scan `data[i:end]`: words and lines go into the scratch, sums into `counts` (see the positions above)."""
    words, before, lines, sizes, closes = (
        scratch.words,
        scratch.before,
        scratch.lines,
        scratch.sizes,
        scratch.closes,
    )
    counts[:] = 0
    before[0] = 0
    number_of_words = number_of_lines = characters = 0
    alphabetic_words = content_words = content_characters = 0
    line, line_start, at_line_start = _START_OF_LINE, 0, True
    i, _ = skip_space(data, i, end, classes)
    while i < end:
        start = i
        i, value, size, flags = scan_word(data, i, end, classes, setting)
        stop = i
        i, newlines = skip_space(data, i, end, classes)
        words[number_of_words] = value
        number_of_words += 1
        characters += size
        before[number_of_words] = characters
        line = extend(line, value)
        if flags & ALPHABETIC:
            alphabetic_words += 1
        if flags & CONTENT:
            content_words += 1
            content_characters += size
        if flags & SPECIAL:
            hashes, ellipses = count_special(data, start, stop)
            counts[HASHES] += hashes
            counts[ELLIPSES] += ellipses
        if at_line_start:
            at_line_start = False
            counts[BULLET_LINES] += (classes[decode(data, start, stop)[0]] & BULLET) != 0
        if newlines > 0 or i >= end:
            lines[number_of_lines] = mix(line)
            sizes[number_of_lines] = characters - line_start
            closes[number_of_lines] = newlines > 1 or i >= end
            counts[ELLIPSIS_LINES] += ends_in_ellipsis(data, start, stop)
            number_of_lines += 1
            line, line_start, at_line_start = _START_OF_LINE, characters, True
    counts[WORDS], counts[CHARACTERS], counts[LINES] = number_of_words, characters, number_of_lines
    counts[ALPHABETIC_WORDS] = alphabetic_words
    counts[CONTENT_WORDS], counts[CONTENT_CHARACTERS] = content_words, content_characters


@kernel
def join_lines(lines, sizes, closes, number_of_lines):
    """Turn lines into paragraphs, in place; returns how many there are."""
    paragraphs = size = 0
    value = _START_OF_PARAGRAPH
    for line in range(number_of_lines):
        value = extend(value, lines[line])
        size += sizes[line]
        if closes[line]:
            lines[paragraphs], sizes[paragraphs] = mix(value), size
            paragraphs += 1
            value, size = _START_OF_PARAGRAPH, 0
    return paragraphs
