# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""What a core can do and Numba has no words for: fetch memory ahead of its use, and look at many values at once.

Encoding looks things up in tables that no cache of a core holds; asking for many places at once and reading them later
hides most of the wait. LLVM turns the vectors into what the machine has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

VECTOR = 32  # values
LINE = 8  # int64 that memory delivers together
_READ, _KEEP, _DATA = 0, 3, 1


@intrinsic
def prefetch(typing_context, data, i):
    """Have the cache line that holds `data[i]` fetched; changes nothing and never fails."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(fetch, [place, *(ir.Constant(number, value) for value in (_READ, _KEEP, _DATA))])
        return context.get_dummy_value()

    return types.void(data, types.int64), generate


@intrinsic
def smallest(typing_context, data, i):
    """The smallest of the VECTOR int32 `data[i:i + VECTOR]`; the caller makes sure that they exist."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        number, vector = ir.IntType(32), ir.VectorType(ir.IntType(32), VECTOR)
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        values = builder.load(place, align=4)
        kind = ir.FunctionType(number, [vector])
        reduce = builder.module.declare_intrinsic(f"llvm.vector.reduce.smin.v{VECTOR}i32", (), kind)
        return builder.call(reduce, [values])

    return types.int32(data, types.int64), generate


@intrinsic
def lookup(typing_context, rows, i, wanted, bits, otherwise):
    """Among the LINE int64 `rows[i:i + LINE]`, each a key << `bits` | value: the smallest value of the key `wanted`, or
    `otherwise`, which is more than any value."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word, vector = ir.IntType(64), ir.VectorType(ir.IntType(64), LINE)
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        found = builder.load(place, align=8)

        def spread(value):
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(
                first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LINE), None)
            )

        wanted, bits, otherwise = map(spread, arguments[2:])
        keys = builder.ashr(found, bits)
        values = builder.sub(found, builder.shl(keys, bits))
        chosen = builder.select(builder.icmp_signed("==", keys, wanted), values, otherwise)
        kind = ir.FunctionType(word, [vector])
        reduce = builder.module.declare_intrinsic(f"llvm.vector.reduce.smin.v{LINE}i64", (), kind)
        return builder.call(reduce, [chosen])

    return types.int64(rows, types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def at(typing_context, data, i):
    """`data[i]` for `i` >= 0; Numba's own indexing spends instructions on places that count from the end."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return data.dtype(data, types.int64), generate


@intrinsic
def put(typing_context, data, i, value):
    """`data[i] = value` for `i` >= 0."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        builder.store(arguments[2], builder.gep(array.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(data, types.int64, data.dtype), generate


def aligned_zeros(words: int) -> npt.NDArray[np.uint64]:
    """That many uint64 of 0, beginning at the start of a cache line."""
    spare: npt.NDArray[Any] = np.zeros(words + LINE, np.uint64)
    skipped = -spare.ctypes.data % (8 * LINE) // 8
    return spare[skipped : skipped + words]
