# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Texts without the lines that contain one of some strings; lines end at newlines only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.text.memory import inlined, kernel

_NEWLINE = 10


class Sought(NamedTuple):
    """The strings whose presence drops a line."""

    data: Any  # uint8, their bytes one after the other
    offsets: Any  # int64
    begins: Any  # bool[256]: whether one of them begins with this byte
    any_case: bool  # found in any case (of ASCII); the strings are in lower case
    whole_tags: bool  # found only where white space, `/`, `>` or the end of the line follows


def sought(strings: Sequence[str], any_case: bool = False, whole_tags: bool = False) -> Sought:
    """The strings for the kernel; none is empty."""
    encoded = [(string.lower() if any_case else string).encode() for string in strings]
    begins = np.zeros(256, np.bool_)
    for string in encoded:
        begins[list(string[:1] + string[:1].upper()) if any_case else [string[0]]] = True
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return Sought(np.frombuffer(b"".join(encoded), np.uint8), offsets, begins, any_case, whole_tags)


def without_lines(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], strings: Sought) -> pa.Array:
    """The texts (large_string) without the lines in which one of the strings is found."""
    out = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    bounds = np.zeros(len(offsets), np.int64)
    _without_lines(data, offsets, strings, out, bounds)
    used = out[: bounds[-1]]
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(bounds), pa.py_buffer(used))


@kernel
def _without_lines(data, offsets, strings, out, bounds):
    size = 0
    for text in range(offsets.size - 1):
        i, end = offsets[text], offsets[text + 1]
        first = True  # no line of this text was kept so far
        while True:
            line, found = i, False
            while i < end and data[i] != _NEWLINE:
                found = found or (strings.begins[data[i]] and _is_found(data, i, end, strings))
                i += 1
            if not found:
                if not first:
                    out[size] = _NEWLINE
                    size += 1
                for k in range(line, i):
                    out[size + k - line] = data[k]
                size += i - line
                first = False
            if i == end:
                break
            i += 1
        bounds[text + 1] = size


@kernel
def _is_found(data, i, end, strings):
    """Whether one of the strings stands at byte i. None contains a newline, so no match goes beyond a line."""
    for number in range(strings.offsets.size - 1):
        first, last = strings.offsets[number], strings.offsets[number + 1]
        stop = i + last - first
        if stop > end:
            continue
        k = first
        while k < last and _lower(data[i + k - first], strings.any_case) == strings.data[k]:
            k += 1
        if k == last and (not strings.whole_tags or stop == end or _ends_tag(data[stop])):
            return True
    return False


@inlined
def _lower(byte, any_case):
    return byte | 0x20 if any_case and 65 <= byte <= 90 else byte


@inlined
def _ends_tag(byte):
    """White space of ASCII, `/` or `>`."""
    return byte == 32 or 9 <= byte <= 13 or byte == 47 or byte == 62
