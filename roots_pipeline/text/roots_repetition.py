# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How often each n-gram of a text occurs, as far as the ROOTS ratios need it: exact, in bounded memory.

    number of n-grams, number of different ones, how many of them occur at least c times (for every c)

From the last follows the sum of the k largest counts, which is the sum over c of min(k, n-grams that occur at least c
times): no counts are sorted.

Most n-grams occur once. A first reading marks every n-gram in a map with two bits for each of many places: seen, seen
again. Only the n-grams whose place was seen again go into a hash table, in a second reading. A text of more than
LARGEST_PART bytes is counted in parts, each with the n-grams whose keys fall into its share of all keys, so that
neither the map nor the table grows with the text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from roots_pipeline.text.memory import allocating, inlined, kernel
from roots_pipeline.text.roots_ngrams import BLOCK, TALLY, begin, read_ngrams
from roots_pipeline.text.tables import grown, is_half_full, new_table, put, reusable, sized

# Positions in the counts; from AT_LEAST on, how many n-grams occur at least once, twice, ... MOST times.
TOTAL, HIGHEST, AT_LEAST = 0, 1, 1
MOST = 1 << 10
COUNTS = AT_LEAST + MOST + 1

LARGEST_PART = 1 << 22
_AHEAD = 8
_RELEASE = 1 << 20
_PLACES = np.uint64(31)  # 32 places of two bits in a uint64
_NONE, _ONE, _TWO, _LOW_HALF = (np.uint64(number) for number in (0, 1, 2, 0xFFFFFFFF))
_HALF, _PLACE_BITS, _WORD_BITS = (np.uint64(number) for number in (32, 33, 38))


@intrinsic
def prefetch(typing_context, data, i):
    """Ask the processor for `data[i]`, which will be needed soon."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch.p0", (), ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        builder.call(function, [place, number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(data, types.uint64), generate


class Room(NamedTuple):
    """Room that is used for one text after the other. `counts` and `tally` hold what `count_ngrams` found."""

    keys: Any  # uint64[BLOCK]
    letters: Any  # uint32[BLOCK], code points
    words: Any  # uint64[BLOCK], hashes
    tally: Any  # int64[TALLY], of the n-gram reader
    marks: Any  # uint64, a power of two
    numbers: Any  # int32[BLOCK]
    counts: Any  # int64[COUNTS]


@allocating
def new_room():
    return Room(
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint64),
        np.zeros(TALLY, np.int64),
        np.empty(LARGEST_PART // 2, np.uint64),
        np.empty(BLOCK, np.int32),
        np.zeros(COUNTS, np.int64),
    )


@allocating
def count_ngrams(data, start, end, reader, room, seen, stamp):
    """Count the n-grams of `data[start:end]` into `room.counts`: (counts above MOST, `seen`, the last stamp).

    The counts above MOST come in no particular order. Uses the stamps after `stamp`; `seen` may have grown.
    """
    counts = room.counts
    counts[: AT_LEAST + counts[HIGHEST] + 1] = 0
    above = np.empty(0, np.int32)
    parts = np.uint64((end - start) // LARGEST_PART + 1)
    for part in range(parts):
        stamp += _ONE
        more, seen = _count_part(data, start, end, reader, room, seen, stamp, np.uint64(part), parts)
        above = np.concatenate((above, more)) if more.size else above
    return above, seen, stamp


@allocating
def _count_part(data, start, end, reader, room, seen, stamp, part, parts):
    keys, counts = room.keys, room.counts
    i, stop = begin(data, start, end, reader, room.tally)
    i, length = read_ngrams(data, i, stop, reader, room, keys)
    whole = i >= stop
    marks = _cleared(room.marks, length if whole else (end - start) // np.int64(parts))
    total = _mark(keys, length, marks, part, parts)
    while i < stop:
        i, length = read_ngrams(data, i, stop, reader, room, keys)
        total += _mark(keys, length, marks, part, parts)
    counts[TOTAL] += total

    if not whole:
        i, stop = begin(data, start, end, reader, room.tally)
        i, length = read_ngrams(data, i, stop, reader, room, keys)
    before = different = 0
    while True:
        length = _keep_marked(keys, length, marks, part, parts)
        if before == 0:
            seen, mask = _sized(seen, length)
        done, follow = 0, -1
        while True:
            done, different, follow = _count_some(
                keys, done, length, seen, mask, stamp, before, different, follow, room.numbers, counts
            )
            if done == length:
                break
            seen, mask = _grown(seen, mask, stamp)
        before += length
        if i >= stop:
            break
        i, length = read_ngrams(data, i, stop, reader, room, keys)
    counts[AT_LEAST + 1] += total - before
    counts[HIGHEST] = max(counts[HIGHEST], 1)
    return _counts_above_most(seen.count, different, counts), seen


@allocating
def _cleared(marks, ngrams):
    """An empty map with 8 to 16 places for each n-gram, as far as there is room."""
    size = 16
    while size < ngrams // 4 and size < marks.size:
        size *= 2
    marks = marks[:size]
    marks[:] = _NONE
    return marks


@inlined
def _belongs(key, part, parts):
    return ((key & _LOW_HALF) * parts) >> _HALF == part


@kernel
def _mark(keys, length, marks, part, parts):
    """Mark the n-grams of this part; returns how many there are. No branch depends on what was seen before."""
    mask = np.uint64(marks.size - 1)
    total = 0
    for k in range(length):
        key = keys[k]
        if parts > _ONE and not _belongs(key, part, parts):
            continue
        total += 1
        seen = _ONE << ((key >> _PLACE_BITS & _PLACES) << _ONE)
        before = marks[key >> _WORD_BITS & mask]
        marks[key >> _WORD_BITS & mask] = before | seen | (before & seen) << _ONE
    return total


@kernel
def _keep_marked(keys, length, marks, part, parts):
    """Keep the keys of this part whose place was seen again; returns how many are left."""
    mask = np.uint64(marks.size - 1)
    kept = 0
    for k in range(length):
        key = keys[k]
        keys[kept] = key
        again = marks[key >> _WORD_BITS & mask] >> ((key >> _PLACE_BITS & _PLACES) << _ONE) & _TWO
        kept += again != _NONE and (parts == _ONE or _belongs(key, part, parts))
    return kept


class Seen(NamedTuple):
    """The n-grams met so far, numbered in the order in which they come."""

    table: Any  # uint64, see `tables`: key -> number
    count: Any  # int32: how often number n was met
    last: Any  # int32: where it was met last, counting the keys that were looked up


@allocating
def new_seen():
    return Seen(new_table(64), np.empty(64, np.int32), np.empty(64, np.int32))


@allocating
def _sized(seen, entries):
    """Room for so many n-grams (at most a start, for very many), and the mask of the table."""
    table, mask = sized(reusable(seen.table), entries)
    return _with_numbers(seen, table, mask), mask


@allocating
def _grown(seen, mask, stamp):
    table, mask = grown(seen.table, mask, stamp)
    return _with_numbers(seen, table, mask), mask


@allocating
def _with_numbers(seen, table, mask):
    """`seen` with this table, and a number for each n-gram that may half fill it."""
    room, held = np.int64(mask) // 2 + 2, seen.count.size
    if held >= room and (held <= _RELEASE or held <= 2 * room):
        return Seen(table, seen.count, seen.last)
    count, last = np.empty(room, np.int32), np.empty(room, np.int32)
    kept = min(held, room)
    count[:kept] = seen.count[:kept]
    last[:kept] = seen.last[:kept]
    return Seen(table, count, last)


@kernel
def _count_some(keys, k, length, seen, mask, stamp, before, different, follow, numbers, counts):
    """Count the keys from k on until all are counted or the table must grow: (k, different n-grams, `follow`).

    `before` keys were looked up before these. What repeats is mostly longer than an n-gram, so that the n-gram after a
    repeated one is mostly the one that came after it the last time: key number `follow`. Only where it is not is the
    table asked.
    """
    table, count, last = seen
    highest = counts[HIGHEST]
    while k < length:
        key = keys[k]
        if k + _AHEAD < length:
            prefetch(table, (keys[k + _AHEAD] & mask) << _ONE)
        if follow >= 0 and keys[follow] == key:
            number = np.int64(numbers[follow])
        else:
            if is_half_full(mask, different):
                break
            index = (key & mask) << _ONE
            tag = table[index | _ONE]
            while (tag >> _HALF == stamp) & (table[index] != key):
                index = (index + _TWO) & (mask << _ONE)
                tag = table[index | _ONE]
            if tag >> _HALF == stamp:
                number = np.int64(tag & _LOW_HALF)
                follow = max(last[number] - before, -1)
            else:
                number, follow = different, -1
                put(table, index, key, stamp, number)
                count[number] = 0
                different += 1
        numbers[k] = number
        last[number] = before + k
        count[number] += 1
        times = np.int64(count[number])
        if times <= MOST:
            counts[AT_LEAST + times] += 1
            highest = max(highest, times)
        k += 1
        follow += follow >= 0
    counts[HIGHEST] = highest
    return k, different, follow


@allocating
def _counts_above_most(count, different, counts):
    """The counts of the n-grams that occur more than MOST times."""
    if counts[HIGHEST] < MOST:
        return np.empty(0, np.int32)
    count = count[:different]
    return count[count > MOST]


@allocating
def sum_of_largest(counts, above, k):
    """The sum of the k largest counts."""
    total = 0
    for count in range(1, counts[HIGHEST] + 1):
        total += min(k, counts[AT_LEAST + count])
    largest = np.sort(above)[::-1][:k]
    return total + (largest - MOST).sum()
