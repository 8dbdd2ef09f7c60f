# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Where separators stand among 64 bytes of UTF-8, found for all of them at once, as bits of a uint64.

LLVM compares vectors of 64 bytes with each byte of each separator. A separator of several bytes is recognised where it
begins, by comparing the bytes one and two places further on too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

SEPARATORS = (
    *range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
    *map(ord, "()|.,!?…。，、।۔،"),
)  # fmt: skip
BLOCK = 64
LOOK_AHEAD = 2  # bytes behind a block that are read too

_BITS = ir.IntType(BLOCK)
_BYTES = ir.VectorType(ir.IntType(8), BLOCK)


def _spread(value: int) -> ir.Constant:
    return ir.Constant(_BYTES, [value] * BLOCK)


def _ranges(values: list[int]) -> list[tuple[int, int]]:
    """Sorted numbers as ranges (first, last)."""
    found: list[tuple[int, int]] = []
    for value in sorted(values):
        if found and found[-1][1] == value - 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return found


def _load(context: Any, builder: Any, signature: Any, arguments: Any, ahead: int) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = builder.gep(array.data, [builder.add(arguments[1], ir.Constant(ir.IntType(64), ahead))])
    return builder.load(builder.bitcast(place, _BYTES.as_pointer()), align=1)


def _is_one_of(builder: Any, found: Any, values: list[int]) -> Any:
    result = None
    for first, last in _ranges(values):
        if first == last:
            same = builder.icmp_unsigned("==", found, _spread(first))
        else:
            same = builder.icmp_unsigned("<=", builder.sub(found, _spread(first)), _spread(last - first))
        result = same if result is None else builder.or_(result, same)
    return result


def _tree(builder: Any, loaded: list[Any], spelled: list[bytes]) -> Any:
    """Whether the bytes begin one of the spellings, which are equally long."""
    if len(spelled[0]) == 1:
        return _is_one_of(builder, loaded[0], [one[0] for one in spelled])
    result = None
    for first in sorted({one[0] for one in spelled}):
        rest = _tree(builder, loaded[1:], [one[1:] for one in spelled if one[0] == first])
        same = builder.and_(builder.icmp_unsigned("==", loaded[0], _spread(first)), rest)
        result = same if result is None else builder.or_(result, same)
    return result


def _mask_of(*lengths: int) -> Callable[..., Any]:
    spelled = [chr(point).encode() for point in SEPARATORS]
    chosen = [[one for one in spelled if len(one) == length] for length in lengths]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = [_load(context, builder, signature, arguments, ahead) for ahead in range(max(lengths))]
        masks = [builder.bitcast(_tree(builder, loaded, group), _BITS) for group in chosen]
        if lengths == (1,):
            space = builder.icmp_unsigned("==", loaded[0], _spread(0x20))
            wide = builder.icmp_unsigned(">=", loaded[0], _spread(0xC2))
            masks += [builder.bitcast(space, _BITS), builder.bitcast(wide, _BITS)]
        return context.make_tuple(builder, signature.return_type, masks)

    return generate


@intrinsic
def ascii_separators(typing_context, data, i):
    """Bits of `data[i:i + 64]`: separators of one byte, spaces, bytes that begin longer characters."""
    return types.UniTuple(types.uint64, 3)(data, types.int64), _mask_of(1)


@intrinsic
def wide_separators(typing_context, data, i):
    """Bits of `data[i:i + 64]`: where separators of two bytes and of three begin. Reads two bytes more."""
    return types.UniTuple(types.uint64, 2)(data, types.int64), _mask_of(2, 3)
