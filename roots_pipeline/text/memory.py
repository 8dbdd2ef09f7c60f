# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How kernels are compiled, and two machine instructions that Numba has no spelling for.

`kernel` is for loops over arrays that somebody else owns: without Numba's reference counts, whose atomic operations
cost more than the work on a word. Such a function may not make or keep arrays. `inlined` is the same for what runs once
per word: Numba calls functions through pointers unless told to put them in place. `allocating` functions may make
arrays.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_BORROWING: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

kernel = njit(**_BORROWING)
inlined = njit(forceinline=True, **_BORROWING)
allocating = njit(cache=True, nogil=True)


@intrinsic
def load_eight(typing_context, data, i):
    """The bytes `data[i:i + 8]` as a little-endian uint64; the caller makes sure that they exist."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        value = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
        value.align = 1
        return value

    return types.uint64(data, types.int64), generate


@intrinsic
def trailing_zeros(typing_context, value):
    """How many low bits of a uint64 are 0; the value is not 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
