# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Lines and paragraphs as datatrove's Gopher filters cut them: see `datatrove_convention`."""

from __future__ import annotations

import numpy as np

from roots_pipeline.text.characters import BULLET, LINE_BREAK, SPACE, decode
from roots_pipeline.text.copies import count_copies
from roots_pipeline.text.hashes import hash_range
from roots_pipeline.text.memory import allocating, kernel
from roots_pipeline.text.words import skip_space

_DOT, _NEWLINE, _CARRIAGE_RETURN, _ELLIPSIS = 46, 10, 13, 0x2026


@kernel
def characters_in(data, i, end):
    characters = 0
    for k in range(i, end):
        characters += (data[k] & 0xC0) != 0x80
    return characters


@kernel
def count_lines(data, i, end, classes):
    """(lines as str.splitlines has them, those that start with a bullet, those that end in an ellipsis)."""
    lines = bullets = ellipses = 0
    is_open, is_blank, after_space, dots, ellipsis = False, True, False, 0, False
    while i < end:
        code, size = decode(data, i, end)
        kind = classes[code]
        i += size
        if kind & LINE_BREAK:
            if code == _CARRIAGE_RETURN and i < end and data[i] == _NEWLINE:
                i += 1
            lines += 1
            ellipses += ellipsis
            is_open, is_blank, after_space, dots, ellipsis = False, True, False, 0, False
            continue
        is_open = True
        if kind & SPACE:
            after_space = True
            continue
        if is_blank:
            bullets += (kind & BULLET) != 0
            is_blank = False
        dots = 0 if code != _DOT else 1 if after_space else dots + 1
        ellipsis = dots >= 3 or code == _ELLIPSIS
        after_space = False
    if is_open:
        lines += 1
        ellipses += ellipsis
    return lines, bullets, ellipses


@kernel
def stripped(data, i, end, classes):
    """Where a text without its outer white space starts and ends."""
    i, _ = skip_space(data, i, end, classes)
    while end > i:
        start = end - 1
        while start > i and (data[start] & 0xC0) == 0x80:
            start -= 1
        if not classes[decode(data, start, end)[0]] & SPACE:
            break
        end = start
    return i, end


@allocating
def copies_of_segments(data, i, end, least, table, stamp):
    """(copies, characters in them, segments, table) of what lies between runs of at least `least` newlines."""
    segments = _split(data, i, end, least, np.empty(0, np.uint64), np.empty(0, np.int32))
    keys, sizes = np.empty(segments, np.uint64), np.empty(segments, np.int32)
    _split(data, i, end, least, keys, sizes)
    copies, inside, table = count_copies(keys, sizes, segments, table, stamp, False)
    return copies, inside, segments, table


@kernel
def _split(data, i, end, least, keys, sizes):
    """Hash and size in characters of each segment, where there is room for them; returns the number of segments."""
    segments, start = 0, i
    while True:
        stop = i
        while i < end and data[i] == _NEWLINE:
            i += 1
        if stop == end or i - stop >= least:
            if segments < keys.size:
                keys[segments] = hash_range(data, start, stop)
                sizes[segments] = characters_in(data, start, stop)
            segments, start = segments + 1, i
        if stop == end:
            return segments
        if i == stop:
            i += 1
