r"""BLOOM's pre-tokenizer: text -> pieces, inside which BPE merges and across which it never does.

BLOOM splits with the regular expression ` ?[^(\s|[.,!?…。，、।۔،])]+`. The engine behind Hugging Face's
tokenizers reads the nested bracket as a union, so a piece is an optional space and a run of characters that are neither
white space nor one of `( ) | . , ! ? … 。 ， 、 । ۔ ،`. What lies between such runs is a piece too, as a whole
("Isolated"): line breaks and indentation therefore become tokens of their own. Other regex engines read the
pattern differently, so this module does not use one: it marks the bytes of separators, 64 at a time (`separators`), and
finds where pieces end with a few operations on the bits.

In: a uint8 array of UTF-8 text. Out: where each piece ends. Bytes that are no valid UTF-8 are word characters.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined, kernel, trailing_zeros
from tokenizer.machine import at, put
from tokenizer.separators import BLOCK, LOOK_AHEAD, SEPARATORS, ascii_separators, wide_separators

PATTERN = r" ?[^(\s|[.,!?…。，、।۔،])]+"

__all__ = ["PATTERN", "SEPARATORS", "Ends", "find_ends", "new_ends", "split_pieces"]

_STRETCH = 32  # blocks that are looked at in one go
_ONE = np.uint64(1)
_TOP = np.uint64(BLOCK - 1)


class Ends(NamedTuple):
    """Room for what `find_ends` finds. `places`: int64, the ends; `tail`: uint8, a copy of the end of the text, which
    may be where memory ends."""

    places: npt.NDArray[np.int64]
    tail: npt.NDArray[np.uint8]


def new_ends() -> Ends:
    """No ends yet."""
    return Ends(np.empty(BLOCK * (_STRETCH + 2), np.int64), np.zeros(2 * BLOCK, np.uint8))


@inlined
def _block(data, place, stop, tail, carry):
    """Marks of the 64 bytes from `place` on: separators (also what lies behind `stop`), spaces, and how far a separator
    goes on into the next block; `carry` is that of the block before."""
    if place >= stop:
        return ~np.uint64(0), np.uint64(0), np.uint64(0)
    behind = np.uint64(0)
    if place + BLOCK + LOOK_AHEAD <= stop:
        marks, spaces, wide = ascii_separators(data, place)
        if wide == 0:
            return marks | carry, spaces, np.uint64(0)
        two, three = wide_separators(data, place)
    else:
        number = stop - place
        for index in range(min(number, BLOCK + LOOK_AHEAD)):
            put(tail, index, at(data, place + index))
        for index in range(number, BLOCK + LOOK_AHEAD):
            put(tail, index, np.uint8(0))
        marks, spaces, _ = ascii_separators(tail, 0)
        two, three = wide_separators(tail, 0)
        if number < BLOCK:
            behind = ~np.uint64(0) << np.uint64(number)
    longer = two | three
    marks |= carry | behind | longer | (longer << _ONE) | (three << np.uint64(2))
    return marks, spaces, (longer >> _TOP) | (three >> (_TOP - _ONE))


@inlined
def find_ends(data, start, stop, ends):
    """Where pieces of a text end that goes from `start`, where a piece begins, to `stop` > `start`: at least one piece,
    and those of about 2,000 bytes. Returns their number; `ends.places` holds them."""
    found = 0
    block = start
    last = start + BLOCK * _STRETCH
    marks, spaces, carry = _block(data, block, stop, ends.tail, np.uint64(0))
    before = marks & _ONE  # the byte before the block: a separator? Where the first piece begins, nothing ends.
    space_before = np.uint64(0)
    usable = ~_ONE
    while block < stop:
        next_marks, next_spaces, carry = _block(data, block + BLOCK, stop, ends.tail, carry)
        after_mark = (marks << _ONE) | before
        before_word = ~((marks >> _ONE) | (next_marks << _TOP))
        own_space = (spaces << _ONE) | space_before
        # Separators begin; or a word begins, before its own space if it has one.
        bits = (marks & ~after_mark) | (~marks & after_mark & ~own_space) | (spaces & before_word)
        bits &= usable
        usable = ~np.uint64(0)
        while bits != 0:
            put(ends.places, found, block + trailing_zeros(bits))
            found += 1
            bits &= bits - _ONE
        before, space_before = marks >> _TOP, spaces >> _TOP
        marks, spaces = next_marks, next_spaces
        block += BLOCK
        if block >= last and found > 0 and block < stop:
            return found
    # What lies behind the text counts as separators: if it ends in a word, that end is found already.
    while found > 0 and at(ends.places, found - 1) >= stop:
        found -= 1
    put(ends.places, found, stop)
    return found + 1


@kernel
def _split(data, ends, out):
    found = 0
    place = np.int64(0)
    while place < data.size:
        number = find_ends(data, place, data.size, ends)
        for index in range(number):
            out[found] = ends.places[index]
            found += 1
        place = out[found - 1]
    return found


def split_pieces(text: bytes) -> list[bytes]:
    """The pieces of one text, in order; joined they are the text again. For inspection: not the fast path."""
    data = np.frombuffer(text, np.uint8)
    out = np.empty(len(text), np.int64)
    stops = out[: _split(data, new_ends(), out)].tolist()
    return [text[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
