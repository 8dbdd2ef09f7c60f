# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How kernels are compiled, and two machine instructions that Numba has no spelling for.

`kernel` is for loops over arrays that somebody else owns: without Numba's reference counts, whose atomic operations
cost more than the work on a word. Such a function may not make or keep arrays. `inlined` is the same for what runs once
per word: Numba calls functions through pointers unless told to put them in place. `allocating` functions may make
arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


def _compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles once and keeps the machine code until a source file changes.

    Numba recompiles a function when its own file has changed. The machine code also holds the functions it calls, so
    all files beside it and all files here count.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(cache=True, nogil=True, **options)(function)
        index = getattr(dispatcher._cache, "_cache_file", None)  # no file if there is nowhere to write
        if index is not None:
            index._source_stamp = (
                _sources(Path(function.__code__.co_filename).parent),
                _sources(Path(__file__).parent),
            )
        return dispatcher

    return decorate


@lru_cache
def _sources(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of the source files in a folder."""
    found = [(path.name, path.stat()) for path in sorted(folder.glob("*.py"))]
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in found)


kernel = _compiled(_nrt=False)
inlined = _compiled(_nrt=False, forceinline=True)
allocating = _compiled()


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
