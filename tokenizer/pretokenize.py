r"""BLOOM's pre-tokenizer: text -> pieces, inside which BPE merges and across which it never does.

BLOOM splits with the regular expression ` ?[^(\s|[.,!?…。，、।۔،])]+`. The engine behind Hugging Face's
tokenizers reads the nested bracket as a union, so a piece is an optional space and a run of characters that are neither
white space nor one of `( ) | . , ! ? … 。 ， 、 । ۔ ،`. What lies between such runs is a piece too, as a whole
("Isolated"): line breaks and indentation therefore become tokens of their own. Other regex engines read the
pattern differently, so this module does not use one: it walks the UTF-8 bytes. `SEPARATORS` lists the 39 code
points at which the expression stops.

In: a uint8 array of UTF-8 text. Out: where each piece ends. Bytes that are no valid UTF-8 are word characters.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined, kernel

PATTERN = r" ?[^(\s|[.,!?…。，、।۔،])]+"

SEPARATORS = (
    *range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
    *map(ord, "()|.,!?…。，、।۔،"),
)  # fmt: skip

_SPACE = 0x20
_WORD, _SEPARATOR, _PERHAPS = 0, 1, 2  # what the first byte of a character says about it


def _first_bytes() -> npt.NDArray[np.uint8]:
    kinds = np.full(256, _WORD, np.uint8)
    for point in SEPARATORS:
        kinds[chr(point).encode()[0]] = _SEPARATOR if point < 0x80 else _PERHAPS
    return kinds


def _separator_map() -> npt.NDArray[np.bool_]:
    known = np.zeros(0x10000, np.bool_)
    known[list(SEPARATORS)] = True
    return known


_FIRST_BYTE = _first_bytes()
_IS_SEPARATOR = _separator_map()


@inlined
def separator_width(data, place, stop):
    """Bytes of the separator at `place` < `stop`, 0 if a word character stands there."""
    first = data[place]
    kind = _FIRST_BYTE[first]
    if kind == _WORD:
        return 0
    if kind == _SEPARATOR:
        return 1
    if first < 0xE0:
        if place + 1 < stop and data[place + 1] & 0xC0 == 0x80:
            point = (np.int64(first & 0x1F) << 6) | (data[place + 1] & 0x3F)
            return 2 if _IS_SEPARATOR[point] else 0
        return 0
    if place + 2 < stop and data[place + 1] & 0xC0 == 0x80 and data[place + 2] & 0xC0 == 0x80:
        point = (np.int64(first & 0x0F) << 12) | (np.int64(data[place + 1] & 0x3F) << 6) | (data[place + 2] & 0x3F)
        return 3 if point >= 0x800 and _IS_SEPARATOR[point] else 0
    return 0


@inlined
def piece_end(data, start, stop):
    """Where the piece that begins at `start` ends, in a text that ends at `stop`; `start` < `stop`."""
    place = start
    if data[place] == _SPACE and place + 1 < stop and separator_width(data, place + 1, stop) == 0:
        place += 1
    if separator_width(data, place, stop) == 0:
        place += 1
        while place < stop and separator_width(data, place, stop) == 0:
            place += 1
        return place
    while place < stop:
        width = separator_width(data, place, stop)
        if width == 0:
            break
        if data[place] == _SPACE and place + 1 < stop and separator_width(data, place + 1, stop) == 0:
            break  # this space belongs to the word behind it
        place += width
    return place


@kernel
def _ends(data, ends):
    found = 0
    place = 0
    while place < data.size:
        place = piece_end(data, place, data.size)
        ends[found] = place
        found += 1
    return found


def split_pieces(text: bytes) -> list[bytes]:
    """The pieces of one text, in order; joined they are the text again. For inspection: not the fast path."""
    data = np.frombuffer(text, np.uint8)
    ends = np.empty(len(text), np.int64)
    stops = ends[: _ends(data, ends)].tolist()
    return [text[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
