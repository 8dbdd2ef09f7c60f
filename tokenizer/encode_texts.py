# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The loop of encoding: texts in, ids out, some dozens of pieces at a time.

Encoding waits for memory more than it computes, so each batch of pieces goes through four steps, in which the waits of
many pieces overlap: cut the text and ask for each piece's line of the cache; look which pieces are new; merge these in
lanes; write the ids of all in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import inlined, kernel
from tokenizer.machine import prefetch
from tokenizer.merge_lanes import (
    LANE_BYTES,
    LANES,
    Lanes,
    count_lane,
    empty_lane,
    new_lanes,
    note_ranks,
    start_lane,
    step_lane,
)  # fmt: skip
from tokenizer.merge_piece import merge_long
from tokenizer.pretokenize import Ends, find_ends, new_ends
from tokenizer.word_cache import (
    CACHED_LENGTH,
    KEY_WORDS,
    LINE_WORDS,
    find_line,
    ids_of,
    is_full,
    load_key,
    place_for,
)  # fmt: skip

Int64 = npt.NDArray[np.int64]

BATCH = 64
NO_ID = -1
DONE, TOO_LONG, CACHE_FULL = range(3)
TEXT, PLACE, WRITTEN, OF_TEXT = range(4)  # the cursor: where the next piece begins, ids written, ids of its text
SPARE_IDS = 8  # of `out`: ids are written two at a time
_NO_ITEM = -1
_FOUND, _NEXT = 0, 1  # places in `ahead`
_END_OF_TEXT = 0  # the length of what is no piece
_BYTES_A_BATCH = BATCH * CACHED_LENGTH  # which the pool of the cache must have room for


class Batch(NamedTuple):
    """Pieces on their way, int64 (BATCH,): where they begin, their lengths, their lines of the cache; `keys`: uint64,
    as the cache wants them; `new`: which are to be merged; `merged`: int32, ids of those that are too long to cache,
    and `numbers`, how many; `lanes`: where they are merged; `ends`: of pieces further on; `ahead`: int64, how many of
    these there are, and how many are used."""

    starts: Int64
    lengths: Int64
    lines: Int64
    keys: npt.NDArray[np.uint64]
    new: Int64
    merged: npt.NDArray[np.int32]
    numbers: Int64
    lanes: Lanes
    ends: Ends
    ahead: Int64


def new_batch() -> Batch:
    """A batch without pieces."""
    starts, lengths, lines, new, numbers = np.zeros((5, BATCH), np.int64)
    keys = np.zeros(BATCH * KEY_WORDS, np.uint64)
    merged = np.zeros(BATCH * LANE_BYTES, np.int32)
    return Batch(starts, lengths, lines, keys, new, merged, numbers, new_lanes(), new_ends(), np.zeros(2, np.int64))


@inlined
def _cut(data, offsets, whole, longest, cache, batch, cursor):
    """Cut off up to BATCH pieces and ends of texts; returns how many, and the length of a piece that is too long."""
    text, place = cursor[TEXT], cursor[PLACE]
    ahead = batch.ahead
    found = 0
    while found < BATCH and text < offsets.size - 1:
        stop = offsets[text + 1]
        while found < BATCH and place < stop:
            end = stop
            if not whole:
                if ahead[_NEXT] == ahead[_FOUND]:
                    ahead[_FOUND] = find_ends(data, place, stop, batch.ends)
                    ahead[_NEXT] = 0
                end = batch.ends.places[ahead[_NEXT]]
            length = end - place
            if length > longest:
                cursor[TEXT], cursor[PLACE] = text, place
                return found, length
            if not whole:
                ahead[_NEXT] += 1
            if length <= CACHED_LENGTH:
                home = load_key(cache, data, place, length, batch.keys, found * KEY_WORDS)
                prefetch(cache.words, home * LINE_WORDS)
                batch.lines[found] = home
            batch.starts[found], batch.lengths[found] = place, length
            found += 1
            place = end
        if found < BATCH and place >= stop:
            batch.lengths[found] = _END_OF_TEXT
            found += 1
            text += 1
    cursor[TEXT], cursor[PLACE] = text, place
    return found, np.int64(0)


@inlined
def _look_up(cache, batch, found):
    """Find the lines of all pieces; returns how many pieces are to be merged."""
    new = 0
    for item in range(found):
        length = batch.lengths[item]
        if length <= CACHED_LENGTH:
            if length != _END_OF_TEXT:
                line = find_line(cache, batch.lines[item], batch.keys, item * KEY_WORDS, length)
                if line < 0:
                    line = -1 - line
                    batch.new[new] = item
                    new += 1
                batch.lines[item] = line
        elif length <= LANE_BYTES:
            batch.new[new] = item
            new += 1
    return new


@inlined
def _keep(cache, batch, lane, item):
    """Take the ids of a piece out of its lane."""
    lanes = batch.lanes
    number = count_lane(lanes, lane)
    if batch.lengths[item] <= CACHED_LENGTH:
        empty_lane(lanes, lane, cache.ids, place_for(cache, batch.lines[item], number))
    else:
        empty_lane(lanes, lane, batch.merged, item * LANE_BYTES)
        batch.numbers[item] = number


@inlined
def _merge(data, table, cache, batch, new):
    """Merge the new pieces in turns, as many at a time as there are lanes."""
    lanes = batch.lanes
    begun = 0
    kept = 0
    for lane in range(LANES):
        lanes.items[lane] = _NO_ITEM
    while kept < new:
        # Two rounds: a core reads a vector slowly whose parts were written just before.
        for lane in range(LANES):
            if lanes.items[lane] != _NO_ITEM:
                note_ranks(lanes, lane, table)
        for lane in range(LANES):
            item = lanes.items[lane]
            if item != _NO_ITEM:
                if step_lane(lanes, lane, table):
                    continue
                _keep(cache, batch, lane, item)
                kept += 1
            item = _NO_ITEM
            if begun < new:
                item = batch.new[begun]
                start_lane(lanes, lane, table, data, batch.starts[item], batch.lengths[item])
                begun += 1
            lanes.items[lane] = item


@kernel
def encode_texts(data, offsets, whole, end_id, table, cache, batch, scratch, cursor, out, lengths):
    """Encode the texts from `cursor` on (text, place in it, ids written, ids of this text); each is cut into pieces
    unless it is `whole` one. Writes `out` and the number of ids of each text.

    Returns (DONE, 0) at the end; stops with (TOO_LONG, length) at a piece that `scratch` is too small for, and with
    (CACHE_FULL, 0) when the cache is to be cleared. Go on with the same cursor.
    """
    written = cursor[WRITTEN]
    of_text = cursor[OF_TEXT]
    text = cursor[TEXT]
    while text < offsets.size - 1:
        if is_full(cache, BATCH, _BYTES_A_BATCH):
            cursor[WRITTEN], cursor[OF_TEXT] = written, of_text
            return CACHE_FULL, np.int64(0)
        found, short = _cut(data, offsets, whole, scratch.ids.size, cache, batch, cursor)
        new = _look_up(cache, batch, found)
        if new > 0:
            _merge(data, table, cache, batch, new)
        for item in range(found):
            length = batch.lengths[item]
            before = written
            if length <= CACHED_LENGTH:
                if length == _END_OF_TEXT:
                    if end_id != NO_ID:
                        out[written] = end_id
                        written += 1
                    lengths[text] = of_text + written - before
                    of_text = 0
                    text += 1
                    continue
                place, number = ids_of(cache, batch.lines[item])
                out[written] = cache.ids[place]
                out[written + 1] = cache.ids[place + 1]
                for index in range(2, number):
                    out[written + index] = cache.ids[place + index]
                written += number
            elif length <= LANE_BYTES:
                for index in range(batch.numbers[item]):
                    out[written + index] = batch.merged[item * LANE_BYTES + index]
                written += batch.numbers[item]
            else:
                written = merge_long(table, data, batch.starts[item], length, scratch, out, written)
            of_text += written - before
        if short > 0:
            cursor[WRITTEN], cursor[OF_TEXT] = written, of_text
            return TOO_LONG, short
    cursor[WRITTEN], cursor[OF_TEXT] = written, of_text
    return DONE, np.int64(0)
