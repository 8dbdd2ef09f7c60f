# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How often each n-gram of a text occurs, as far as the ROOTS ratios need it: exact, in bounded memory.

    number of n-grams, number of different ones, how many of them occur at least c times (for every c)

From the last follows the sum of the k largest counts, which is the sum over c of min(k, n-grams that occur at least c
times): no counts are sorted.

Most n-grams occur once. A first reading marks every n-gram in a map with two bits for each of many places: seen, seen
again. Only n-grams whose place was seen again go into a hash table, in a second reading. Where the map says that they
are too many for a table, they are counted in parts, in a reading each: by the share of all keys that a key falls into.
So neither the map nor the table grows with the text.
"""

from __future__ import annotations

import math
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

LARGEST_PART = 3_500_000  # n-grams: they half fill a table of 2^23 slots, 128 MB
_MARKS = 1 << 21
_AHEAD = 8
_RELEASE = 1 << 20
_PLACES = np.uint64(31)  # 32 places of two bits in a uint64: seen, and seen again
_SEEN, _PAIRS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_FOURS, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)
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
        np.empty(_MARKS, np.uint64),
        np.empty(BLOCK, np.int32),
        np.zeros(COUNTS, np.int64),
    )


@allocating
def count_ngrams(data, start, end, reader, room, seen, stamp, largest_part):
    """Count the n-grams of `data[start:end]` into `room.counts`: (counts above MOST, `seen`, the last stamp).

    The counts above MOST come in no particular order. Uses the stamps after `stamp`; `seen` may have grown. A part has
    about `largest_part` n-grams that occur again, no more.
    """
    keys, counts = room.keys, room.counts
    counts[: AT_LEAST + counts[HIGHEST] + 1] = 0
    i, stop = begin(data, start, end, reader, room.tally)
    i, length = read_ngrams(data, i, stop, reader, room, keys)
    marks = _cleared(room.marks, length if i >= stop else stop - start)
    _mark(keys, length, marks)
    counts[TOTAL] = length
    whole = i >= stop
    while i < stop:
        i, length = read_ngrams(data, i, stop, reader, room, keys)
        _mark(keys, length, marks)
        counts[TOTAL] += length
    parts = np.uint64(_number_of_parts(marks, largest_part) if counts[TOTAL] > largest_part else 1)
    whole &= parts == _ONE  # all keys are at hand: there is no need to read again
    above, looked_up = np.empty(0, np.int32), 0
    for part in range(parts):
        stamp += _ONE
        if not whole:
            i, stop = begin(data, start, end, reader, room.tally)
            length = 0
        before = different = 0
        while True:
            if not whole:
                i, length = read_ngrams(data, i, stop, reader, room, keys)
            length = _keep_marked(keys, length, marks, np.uint64(part), parts)
            if before == 0:
                seen, mask = _sized(seen, length)
            done = follow = 0
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
        looked_up += before
        if counts[HIGHEST] == MOST:
            times = seen.met[:different, TIMES]
            above = np.concatenate((above, times[times > MOST]))
    counts[AT_LEAST + 1] += counts[TOTAL] - looked_up
    counts[HIGHEST] = max(counts[HIGHEST], 1)
    return above, seen, stamp


@allocating
def _cleared(marks, ngrams):
    """An empty map with 8 to 16 places for each n-gram, as far as there is room."""
    size = 16
    while size < ngrams // 4 and size < marks.size:
        size *= 2
    marks = marks[:size]
    marks[:] = _NONE
    return marks


@kernel
def _mark(keys, length, marks):
    """Mark the n-grams. No branch depends on what was seen before."""
    mask = np.uint64(marks.size - 1)
    for k in range(length):
        key = keys[k]
        seen = _ONE << ((key >> _PLACE_BITS & _PLACES) << _ONE)
        before = marks[key >> _WORD_BITS & mask]
        marks[key >> _WORD_BITS & mask] = before | seen | (before & seen) << _ONE


@kernel
def _number_of_parts(marks, largest_part):
    """In how many parts the n-grams whose place was seen again are few enough for a table.

    Of P places, s were seen by about D = P ln(P / (P - s)) different n-grams (linear counting). If A places were seen
    again, they hold A + (D - s) of them.
    """
    seen = again = 0
    for word in marks:
        seen += _ones(word & _SEEN)
        again += _ones(word & ~_SEEN)
    places = 32 * marks.size
    different = places * math.log(places / max(places - seen, 1))
    return 1 + int((again + max(different - seen, 0.0)) / largest_part)


@inlined
def _ones(word):
    """How many bits of a word are set."""
    word -= word >> _ONE & _SEEN
    word = (word & _PAIRS) + (word >> _TWO & _PAIRS)
    word = word + (word >> np.uint64(4)) & _FOURS
    return np.int64(word * _BYTES >> np.uint64(56))


@inlined
def _belongs(key, part, parts):
    return ((key & _LOW_HALF) * parts) >> _HALF == part


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
    met: Any  # int32[room, 2]: how often number n was met, and where last (counting the keys that were looked up)


TIMES, LAST = 0, 1


@allocating
def new_seen():
    return Seen(new_table(64), np.empty((64, 2), np.int32))


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
    room, held = np.int64(mask) // 2 + 2, len(seen.met)
    if held >= room and (held <= _RELEASE or held <= 2 * room):
        return Seen(table, seen.met)
    met = np.empty((room, 2), np.int32)
    kept = min(held, room)
    met[:kept] = seen.met[:kept]
    return Seen(table, met)


@kernel
def _count_some(keys, k, length, seen, mask, stamp, before, different, follow, numbers, counts):
    """Count the keys from k on until all are counted or the table must grow: (k, different n-grams, `follow`).

    `before` keys were looked up before these. What repeats is mostly longer than an n-gram, so that the n-gram after a
    repeated one is mostly the one that came after it the last time: key number `follow`. Only where it is not is the
    table asked. Whether a key is new is as good as random, so no branch depends on that.
    """
    table, met = seen
    highest = counts[HIGHEST]
    while k < length:
        key = keys[k]
        if k + _AHEAD < length:
            prefetch(table, (keys[k + _AHEAD] & mask) << _ONE)
        if (keys[follow] == key) & (follow < k):
            number = np.int64(numbers[follow])
            times = np.int64(met[number, TIMES]) + 1
        else:
            if is_half_full(mask, different):
                break
            index = (key & mask) << _ONE
            tag = table[index | _ONE]
            while (tag >> _HALF == stamp) & (table[index] != key):
                index = (index + _TWO) & (mask << _ONE)
                tag = table[index | _ONE]
            known = tag >> _HALF == stamp
            number = np.int64(tag & _LOW_HALF) if known else different
            put(table, index, key, stamp, number)
            place = np.int64(met[number, LAST]) - before
            follow = place if known & (place >= 0) else k
            times = (np.int64(met[number, TIMES]) if known else 0) + 1
            different += not known
        numbers[k] = number
        met[number, TIMES] = times
        met[number, LAST] = before + k
        if times <= MOST:
            counts[AT_LEAST + times] += 1
            highest = max(highest, times)
        k += 1
        follow += 1
    counts[HIGHEST] = highest
    return k, different, follow


@allocating
def sum_of_largest(counts, above, k):
    """The sum of the k largest counts."""
    total = 0
    for count in range(1, counts[HIGHEST] + 1):
        total += min(k, counts[AT_LEAST + count])
    largest = np.sort(above)[::-1][:k]
    return total + (largest - MOST).sum()
