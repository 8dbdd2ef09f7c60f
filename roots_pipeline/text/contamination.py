# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""One scan over texts that finds every n-gram of an index, and every short item as a whole.

In: Arrow text buffers and `contamination_tables.Tables`. Out: hits: the text, what was found, and where. A short item
of the kind `bounded` only counts between two borders (`contamination_characters`) or edges of the text.

A text is read in blocks of words. Within a block all questions to the filters come one after the other, so that the
processor waits for many answers from memory at once and not for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.contamination_characters import Folding
from roots_pipeline.text.contamination_tables import (
    ABSENT,
    ANYWHERE,
    BASE,
    BOUNDED,
    WHOLE,
    Tables,
    look_up,
    may_contain,
)
from roots_pipeline.text.contamination_words import next_word
from roots_pipeline.text.hashes import mix
from roots_pipeline.text.memory import inlined, kernel

Hits = npt.NDArray[np.int64]

_ROOM = 1 << 19  # hits; memory is only taken for those that there are
_BLOCK = 512


class _Block(NamedTuple):
    """The words of a text that are at hand, the last ones of the block before first."""

    sums: Any  # uint64[words + 1]: the sum over all words of the text before each word, and behind the last
    starts: Any  # int64: first byte of each word
    stops: Any  # int64: byte behind it
    borders: Any  # bool[words + 1]: whether a border, or the edge of the text, is before each word
    places: Any  # int64[words + 1]: room for a list of places


def scan_texts(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.bool_],
    folding: Folding,
    tables: Tables,
) -> Hits:
    """Hits in the texts that are wanted: int64[hits, 4] of (text, found, first byte, byte behind the last).

    `found` is the id of an n-gram, or -1 - number of a short item. Bytes count from the start of `data`. Hits are in
    order of texts.
    """
    room = _BLOCK + 2 * len(tables.powers) + 1
    kinds: tuple[Any, ...] = (np.uint64, np.int64, np.int64, np.bool_, np.int64)
    block = _Block(*(np.zeros(room, kind) for kind in kinds))
    hits = np.empty((_ROOM, 4), np.int64)
    count = _scan(data, offsets, wanted, folding, tables, block, hits)
    if count > len(hits):
        hits = np.empty((count, 4), np.int64)
        _scan(data, offsets, wanted, folding, tables, block, hits)
    return hits[:count]


@kernel
def _scan(data, offsets, wanted, folding, tables, block, hits):
    """Returns the number of hits; those beyond the room in `hits` are only counted.

    A place in a text is the number of words in the block before it. What ends at a place is judged when the word behind
    it is known, because that tells whether the place is a border.
    """
    carried = 2 * tables.powers.size
    found = 0
    for text in range(len(offsets) - 1):
        if not wanted[text]:
            continue
        i, end = offsets[text], offsets[text + 1]
        words, judged, more = 0, 0, True
        gram_place, short_place = tables.grams.size, tables.anywhere.size
        block.sums[0], block.borders[0] = np.uint64(0), True
        while more:
            i, words, more = _read_block(data, i, end, folding, block, words)
            last = words - 1 if more else words
            if tables.shorts.bounded:
                found = _judge_borders(tables, block, max(judged + 1, tables.shorts.bounded), last, text, hits, found)
                judged = last
            if tables.shorts.anywhere:
                short_place, found = _ask(tables, tables.anywhere, _find_anywhere, block, short_place, last, more, text,
                                          hits, found)
            gram_place, found = _ask(tables, tables.grams, _find_gram, block, gram_place, last, more, text, hits, found)
            if more:
                gone = words - carried
                for k in range(carried):
                    block.sums[k], block.starts[k] = block.sums[gone + k], block.starts[gone + k]
                    block.stops[k], block.borders[k] = block.stops[gone + k], block.borders[gone + k]
                block.sums[carried] = block.sums[words]
                words, judged = carried, judged - gone
                gram_place, short_place = gram_place - gone, short_place - gone
        if tables.whole and 0 < words < tables.size:
            gram = look_up(tables, mix(block.sums[words] + WHOLE))
            if gram >= 0:
                found = _note(hits, found, text, gram, block.starts[0], block.stops[words - 1])
    return found


@kernel
def _read_block(data, i, end, folding, block, words):
    """Fill the block: (byte where it stopped, words in it, whether the text goes on)."""
    total = block.sums[words]
    while words < block.starts.size - 1:
        start, stop, i, value, size, _, border = next_word(data, i, end, folding)
        if not size:
            block.borders[words] = True
            return i, words, False
        block.starts[words], block.stops[words] = start, stop
        block.borders[words] = border or (words == 0)
        total = total * BASE + value
        words += 1
        block.sums[words] = total
    return i, words, True


@inlined
def _sum_before(tables, block, place, number):
    """The sum over the last `number` words before a place."""
    return block.sums[place] - block.sums[place - number] * tables.powers[number]


@inlined
def _ask(tables, anchors, find, block, place, last, more, text, hits, found):
    """Ask for anchors from a place on, and look closer where one may be: (the next place to ask at, hits)."""
    final = last - anchors.stride + 1 if more else last
    while place <= final:
        if may_contain(anchors.filter, mix(_sum_before(tables, block, place, anchors.size))):
            for end in range(place, min(place + anchors.stride, last + 1)):
                found = find(tables, block, end, text, hits, found)
        place += anchors.stride
    return place, found


@kernel
def _find_gram(tables, block, place, text, hits, found):
    """Note the n-gram that ends at a place; returns the number of hits."""
    if place >= tables.size:
        gram = look_up(tables, mix(_sum_before(tables, block, place, tables.size)))
        if gram >= 0:
            found = _note(hits, found, text, gram, block.starts[place - tables.size], block.stops[place - 1])
    return found


@kernel
def _find_anywhere(tables, block, place, text, hits, found):
    """Note the items of the kind anywhere that end at a place; returns the number of hits."""
    if place >= tables.shorts.anywhere:
        found = _find_short(tables, ANYWHERE, tables.shorts.anywhere, block, place, text, hits, found)
    return found


@kernel
def _judge_borders(tables, block, first, last, text, hits, found):
    """Note the items between borders that end at one of the places; returns the number of hits."""
    count = 0  # borders come as a surprise to the processor: list them without a branch
    for place in range(first, last + 1):
        block.places[count] = place
        count += block.borders[place]
    for k in range(count):
        key = mix(_sum_before(tables, block, block.places[k], tables.shorts.bounded) + BOUNDED)
        if may_contain(tables.tails, key):
            found = _find_short(tables, BOUNDED, tables.shorts.bounded, block, block.places[k], text, hits, found)
    return found


@kernel
def _find_short(tables, kind, tail, block, place, text, hits, found):
    shorts = tables.shorts
    row = look_up(tables, mix(_sum_before(tables, block, place, tail) + kind))
    if row < 0 and row != ABSENT:
        for k in range(shorts.tail_first[-1 - row], shorts.tail_first[-row]):
            item = shorts.tail_items[k]
            start = place - shorts.lengths[item]
            if (
                start >= 0
                and mix(_sum_before(tables, block, place, shorts.lengths[item]) + kind) == shorts.hashes[item]
                and (kind == ANYWHERE or block.borders[start])
            ):
                found = _note(hits, found, text, -1 - item, block.starts[start], block.stops[place - 1])
    return found


@inlined
def _note(hits, found, text, what, start, stop):
    if found < len(hits):
        hits[found, 0], hits[found, 1], hits[found, 2], hits[found, 3] = text, what, start, stop
    return found + 1
