# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Lines and sentences of texts: where they are, what they hash to, and texts without some of them.

A *line* lies between newlines (U+000A); blank lines count. A *sentence* ends behind `.`, `!`, `?` and the like of other
scripts and the quotes and brackets that close it, where white space or the end of the text follows (none is needed
behind full-width marks), and at a newline; what is blank is no sentence. Abbreviations end sentences, too: that does no
harm where equal texts are compared.

Segments that are hashed have no white space around them. Two hashes of 64 bits tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.text.characters import SPACE, character_classes, decode
from roots_pipeline.text.datatrove_lines import characters_in, stripped
from roots_pipeline.text.hashes import MULTIPLIER, extend, extend_otherwise, hash_spans, mix
from roots_pipeline.text.memory import allocating, inlined, kernel, load_eight, trailing_zeros
from roots_pipeline.text.roots_characters import lower_case

Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

_NEWLINE = 10
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_TERMINATORS = ".!?…\u2026।॥۔؟።။៕"  # also Devanagari, Urdu, Arabic, Ethiopic, Myanmar, Khmer
_WIDE_TERMINATORS = "。！？｡"
_CLOSERS = "\"')]}»”’」』）】›"
_ENDS, _ENDS_WIDE, _CLOSES = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments in the order of the texts: which text, the bytes of the whole line (of a sentence: as below), the bytes
    without white space around them, and their number of characters (see `find_segments`)."""

    text: Numbers
    whole_start: Numbers
    whole_stop: Numbers
    start: Numbers
    stop: Numbers
    characters: Numbers


def find_segments(
    data: npt.NDArray[np.uint8], offsets: Numbers, sentences: bool, enough: int = 1 << 40
) -> Segments:
    """The lines of each text, or its sentences. Characters are counted up to `enough`: more may be given as that."""
    leads, marks = _marks()
    table = _find(data, offsets, sentences, enough, character_classes(), leads, marks)
    return Segments(*(np.ascontiguousarray(column) for column in table.T))


@lru_cache(maxsize=1)
def _marks() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Flags of the first byte of each terminator (the byte that is worth a look), and of each code point below 2^16."""
    leads, marks = np.zeros(256, np.uint8), np.zeros(0x10000, np.uint8)
    for characters, flag in ((_TERMINATORS, _ENDS), (_WIDE_TERMINATORS, _ENDS_WIDE), (_CLOSERS, _CLOSES)):
        for character in characters:
            marks[ord(character)] = flag
            if flag != _CLOSES:
                leads[character.encode()[0]] = 1
    return leads, marks


@allocating
def _find(data, offsets, sentences, enough, classes, leads, marks):
    table, found = np.empty((1024, 6), np.int64), 0
    for text in range(offsets.size - 1):
        i, end = offsets[text], offsets[text + 1]
        more = True
        while more:
            line_end = _line_end(data, i, end)
            more = line_end < end
            while True:
                stop = _sentence_end(data, i, line_end, classes, leads, marks) if sentences else line_end
                if found == len(table):
                    table = np.concatenate((table, np.empty_like(table)))
                found = _put(data, text, i, stop, classes, enough, not sentences, table, found)
                i = stop
                if i == line_end:
                    break
            i = line_end + 1
    return table[:found]


@inlined
def _line_end(data, i, end):
    while i + 8 <= end:
        word = load_eight(data, i) ^ _NEWLINES
        mark = (word - _ONES) & ~word & _TOPS  # the lowest bit that is set belongs to a newline
        if mark:
            return i + (trailing_zeros(mark) >> 3)
        i += 8
    while i < end and data[i] != _NEWLINE:
        i += 1
    return i


@inlined
def _put(data, text, i, end, classes, enough, blank_too, table, found):
    start, stop = stripped(data, i, end, classes)
    if start == stop and not blank_too:
        return found
    table[found, 0], table[found, 1], table[found, 2] = text, i if blank_too else start, end if blank_too else stop
    table[found, 3], table[found, 4] = start, stop
    # A character has four bytes at most.
    table[found, 5] = enough if (stop - start) >> 2 >= enough else characters_in(data, start, stop)
    return found + 1


@kernel
def _sentence_end(data, i, end, classes, leads, marks):
    """Where the sentence that begins at byte i ends: behind its last mark and what closes it."""
    while True:
        while i < end and not leads[data[i]]:
            i += 1
        if i == end:
            return end
        code, size = decode(data, i, end)
        i += size
        kind = marks[code] if code < marks.size else 0
        if not kind & (_ENDS | _ENDS_WIDE):
            continue
        wide = kind == _ENDS_WIDE
        while i < end:
            code, size = decode(data, i, end)
            kind = marks[code] if code < marks.size else 0
            if not kind:
                break
            wide |= kind == _ENDS_WIDE
            i += size
        if i == end or wide or classes[code] & SPACE:
            return i


def segment_hashes(data: npt.NDArray[np.uint8], segments: Segments, lower: bool) -> tuple[Keys, Keys]:
    """Two hashes of each segment, of its lower-case characters if wanted."""
    if not lower:
        return hash_spans(data, segments.start, segments.stop)
    first, second = np.empty(len(segments.text), np.uint64), np.empty(len(segments.text), np.uint64)
    _hash_lower(data, segments.start, segments.stop, lower_case(), first, second)
    return first, second


@kernel
def _hash_lower(data, start, stop, lower, first, second):
    for k in range(start.size):
        one = other = np.uint64(1)
        i = start[k]
        while i < stop[k]:
            code, size = decode(data, i, stop[k])
            one = extend(one, np.uint64(lower[code]))
            other = extend_otherwise(other, np.uint64(lower[code]))
            i += size
        first[k], second[k] = mix(one), mix(other)


def runs_of_segments(hashes: tuple[Keys, Keys], texts: Numbers, size: int) -> tuple[Numbers, tuple[Keys, Keys]]:
    """Runs of `size` segments of one text: the first segment of each, and two hashes of each."""
    if size == 1:
        return np.arange(len(texts)), hashes
    begins = np.arange(max(len(texts) - size + 1, 0))
    begins = begins[texts[begins] == texts[begins + size - 1]]
    both = np.empty((2, len(begins)), np.uint64)
    _hash_runs(hashes[0], begins, size, both[0])
    _hash_runs(hashes[1], begins, size, both[1])
    return begins, (both[0], both[1])


@kernel
def _hash_runs(hashes, begins, size, out):
    for k in range(begins.size):
        value = MULTIPLIER
        for i in range(begins[k], begins[k] + size):
            value = extend(value, hashes[i])
        out[k] = mix(value)


def without_segments(
    data: npt.NDArray[np.uint8], offsets: Numbers, segments: Segments, cut: npt.NDArray[np.bool_], stripped_lines: bool
) -> tuple[pa.Array, Numbers]:
    """The texts (large_string) without the segments marked, and how many bytes each lost.

    Between two segments that stay is what was there; if one was cut between them, a newline if there was one, else the
    white space before the second. With `stripped_lines` segments are lines, and all of them lose the white space
    around them.
    """
    out, bounds = np.empty(int(offsets[-1] - offsets[0]), np.uint8), np.zeros(len(offsets), np.int64)
    start = segments.start if stripped_lines else segments.whole_start
    stop = segments.stop if stripped_lines else segments.whole_stop
    _write(data, offsets, segments.text, start, stop, cut, stripped_lines, out, bounds)
    text = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(bounds), pa.py_buffer(out[: bounds[-1]]))
    return text, np.diff(offsets) - np.diff(bounds)


@kernel
def _write(data, offsets, text, start, stop, cut, stripped_lines, out, bounds):
    k = size = 0
    for number in range(bounds.size - 1):
        written, after_cut, newline, first = offsets[number], False, False, True
        while k < text.size and text[k] == number:
            for i in range(written, start[k]):
                newline |= data[i] == _NEWLINE
            if cut[k]:
                after_cut = True
            else:
                if stripped_lines:
                    size = size if first else _put_newline(out, size)
                elif not after_cut:
                    size = _copy(data, written, start[k], out, size)
                elif not first and newline:
                    size = _put_newline(out, size)
                elif not first:
                    size = _copy(data, written, start[k], out, size)
                size = _copy(data, start[k], stop[k], out, size)
                after_cut, newline, first = False, False, False
            written = stop[k]
            k += 1
        if not after_cut and not stripped_lines:
            size = _copy(data, written, offsets[number + 1], out, size)
        bounds[number + 1] = size


@inlined
def _put_newline(out, size):
    out[size] = _NEWLINE
    return size + 1


@inlined
def _copy(data, begin, end, out, size):
    for k in range(begin, end):
        out[size + k - begin] = data[k]
    return size + end - begin
