# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""MD5 (RFC 1321) of many short byte ranges: the first eight bytes of each digest, as a big-endian number.

Sixteen messages of at most 55 bytes (one block with its padding) are hashed side by side in vector registers; longer
ones one at a time, in the first of the sixteen lanes. Only for hashes that others have published; nothing new should
use MD5.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from roots_pipeline.text.memory import inlined, kernel, load_eight

LANES = 16
ONE_BLOCK = 55  # bytes of a message that fits into a block with its padding
# uint32 numbers of the work array, each row for all lanes: four of state, the sixteen words of a block, and where the
# words of the last message ended.
WORK = 21 * LANES

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_SINES = [int(abs(math.sin(k + 1)) * 2**32) for k in range(64)]
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_ORDER = ((1, 0), (5, 1), (3, 5), (7, 0))  # step k of a turn takes word (stride * k + first) mod 16
_HALF = np.uint64(32)


@intrinsic
def _compress(typing_context, work):
    """Take one block of each lane into the state: the 64 steps of RFC 1321, section 3.4, on vectors of lanes."""

    def generate(context, builder, signature, arguments):
        row = ir.VectorType(ir.IntType(32), LANES)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        rows = builder.bitcast(array.data, row.as_pointer())

        def place(k):
            return builder.gep(rows, [ir.Constant(ir.IntType(64), k)])

        def constant(value):
            return ir.Constant(row, [value] * LANES)

        loaded = [builder.load(place(k), align=4) for k in range(20)]
        state, words = loaded[:4], loaded[4:]
        for step in range(64):
            turn, k = divmod(step, 16)
            a, b, c, d = state
            if turn == 0:
                mixed = builder.xor(d, builder.and_(b, builder.xor(c, d)))
            elif turn == 1:
                mixed = builder.xor(c, builder.and_(d, builder.xor(b, c)))
            elif turn == 2:
                mixed = builder.xor(b, builder.xor(c, d))
            else:
                mixed = builder.xor(c, builder.or_(b, builder.not_(d)))
            stride, first = _ORDER[turn]
            word = builder.add(words[(stride * k + first) % 16], constant(_SINES[step]))
            total = builder.add(builder.add(a, mixed), word)
            shift = _SHIFTS[turn][k % 4]
            turned = builder.or_(builder.shl(total, constant(shift)), builder.lshr(total, constant(32 - shift)))
            state = [d, builder.add(b, turned), b, c]
        for k in range(4):
            builder.store(builder.add(loaded[k], state[k]), place(k), align=4)
        return context.get_dummy_value()

    return types.void(work), generate


@kernel
def load_message(work, lane, data, start, stop):
    """Put a message of at most ONE_BLOCK bytes, with its padding, into a lane."""
    length = stop - start
    at, end = 4 * LANES + lane, np.int64(work[20 * LANES + lane])
    k = 0
    while k + 8 <= length:
        at = _put(work, at, load_eight(data, start + k))
        k += 8
    eight = np.uint64(0x80) << np.uint64(8 * (length - k))
    for i in range(length - k):
        eight |= np.uint64(data[start + k + i]) << np.uint64(8 * i)
    at = _put(work, at, eight)
    work[20 * LANES + lane] = np.uint32(at)
    while at < end:  # what the message before has left there
        at = _put(work, at, np.uint64(0))
    work[18 * LANES + lane] = np.uint32(8 * length)


@inlined
def _put(work, at, eight):
    work[at], work[at + LANES] = np.uint32(eight), np.uint32(eight >> _HALF)
    return at + 2 * LANES


@kernel
def hash_lanes(work, lanes, out):
    """Hash the messages that were loaded into the first lanes; `out[lane]` gets the first eight bytes of a digest."""
    _reset(work)
    _compress(work)
    for lane in range(lanes):
        out[lane] = _first_bytes(work, lane)


@kernel
def hash_long(work, data, start, stop):
    """The first eight bytes of the digest of a message of any length."""
    _reset(work)
    length, at = stop - start, start
    while at <= stop + 8:  # the padding needs a byte and the length eight
        for word in range(16):
            value = np.uint32(0)
            for k in range(4):
                place = at + 4 * word + k
                if place < stop:
                    value |= np.uint32(data[place]) << np.uint32(8 * k)
                elif place == stop:
                    value |= np.uint32(0x80) << np.uint32(8 * k)
            work[(4 + word) * LANES] = value
        if at + 64 > stop + 8:
            work[18 * LANES], work[19 * LANES] = np.uint32(8 * length), np.uint32((8 * length) >> 32)
        _compress(work)
        at += 64
    work[19 * LANES], work[20 * LANES] = 0, np.uint32(18 * LANES)
    return _first_bytes(work, 0)


@inlined
def _reset(work):
    for k in range(4):
        for lane in range(LANES):
            work[k * LANES + lane] = _START[k]


@inlined
def _first_bytes(work, lane):
    first, second = np.uint64(work[lane]), np.uint64(work[LANES + lane])
    value = np.uint64(0)
    for k in range(4):
        value |= ((first >> np.uint64(8 * k)) & np.uint64(255)) << np.uint64(56 - 8 * k)
        value |= ((second >> np.uint64(8 * k)) & np.uint64(255)) << np.uint64(24 - 8 * k)
    return value
