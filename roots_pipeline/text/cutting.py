# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Cutting byte spans out of UTF-8 texts at character borders.

Spans of a text may overlap; their union is cut. Where it begins or ends inside a character, the whole character stays:
nothing but repeated bytes ever goes, and what stays is valid UTF-8.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.text.memory import inlined, kernel

Numbers = npt.NDArray[np.int64]


def cut_spans(
    data: npt.NDArray[np.uint8], offsets: Numbers, text: Numbers, start: Numbers, stop: Numbers
) -> tuple[pa.Array, Numbers]:
    """The texts (large_string) without the spans `[start, stop)` (bytes of text `text[i]`), and bytes cut from each.

    Spans are sorted by text and start, and lie inside their text.
    """
    size = int(offsets[-1] - offsets[0])
    out, bounds = np.empty(size, np.uint8), np.zeros(len(offsets), np.int64)
    cut = np.zeros(len(offsets) - 1, np.int64)
    _cut(data, offsets, text, start, stop, out, bounds, cut)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(out[: bounds[-1]])]
    return pa.LargeStringArray.from_buffers(len(cut), buffers[1], buffers[2]), cut


@kernel
def _cut(data, offsets, text, start, stop, out, bounds, cut):
    span = size = 0
    kept = offsets[0]  # up to where the bytes have been dealt with; what lies between two cuts is copied in one go
    for k in range(cut.size):
        base, length = offsets[k], offsets[k + 1] - offsets[k]
        while span < text.size and text[span] == k:
            first, last = start[span], stop[span]
            span += 1
            while span < text.size and text[span] == k and start[span] <= last:
                last = max(last, stop[span])
                span += 1
            while first < last and _inside_character(data, base, length, first):
                first += 1
            while last > first and _inside_character(data, base, length, last):
                last -= 1
            if first < last:
                size = _copy(data, kept, base + first, out, size)
                kept = base + last
                cut[k] += last - first
        bounds[k + 1] = bounds[k] + length - cut[k]
    _copy(data, kept, offsets[cut.size], out, size)


@inlined
def _inside_character(data, base, length, at):
    return at < length and data[base + at] & 0xC0 == 0x80


@inlined
def _copy(data, begin, end, out, size):
    # Unsigned places, because Numba looks whether others are negative, and that is no vector instruction.
    for k in range(end - begin):
        out[np.uint64(size) + np.uint64(k)] = data[np.uint64(begin) + np.uint64(k)]
    return size + end - begin


def copy_spans(data: npt.NDArray[np.uint8], start: Numbers, stop: Numbers) -> tuple[npt.NDArray[np.uint8], Numbers]:
    """The bytes `data[start[i]:stop[i]]` one after the other, and where each begins (spans + 1 entries)."""
    bounds = np.append(0, np.cumsum(stop - start))
    out = np.empty(bounds[-1], np.uint8)
    _copy_spans(data, start, stop, out)
    return out, bounds


@kernel
def _copy_spans(data, start, stop, out):
    size = 0
    for k in range(start.size):
        size = _copy(data, start[k], stop[k], out, size)
