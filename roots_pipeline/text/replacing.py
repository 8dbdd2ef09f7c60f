# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Putting short strings in the place of byte spans of UTF-8 texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.text.memory import inlined, kernel

Numbers = npt.NDArray[np.int64]


def replace_spans(
    data: npt.NDArray[np.uint8],
    offsets: Numbers,
    start: Numbers,
    stop: Numbers,
    which: npt.NDArray[np.uint8],
    strings: Sequence[bytes],
) -> pa.Array:
    """The texts (large_string) with `strings[which[i]]` in the place of the bytes `data[start[i]:stop[i]]`.

    Spans are sorted, do not overlap, lie each inside one text and begin and end between characters.
    """
    lengths = np.array([len(string) for string in strings], np.int64)
    growth = int((lengths[which] - (stop - start)).sum()) if len(which) else 0
    out = np.empty(int(offsets[-1] - offsets[0]) + growth, np.uint8)
    bounds = np.zeros(len(offsets), np.int64)
    new, places = np.frombuffer(b"".join(strings), np.uint8), np.append(0, np.cumsum(lengths))
    _replace(data, offsets, start, stop, which, new, places, out, bounds)
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(bounds), pa.py_buffer(out))


@kernel
def _replace(data, offsets, start, stop, which, new, places, out, bounds):
    span = size = 0
    for text in range(offsets.size - 1):
        i, end = offsets[text], offsets[text + 1]
        while span < start.size and start[span] < end:
            size = _copy(data, i, start[span], out, size)
            size = _copy(new, places[which[span]], places[which[span] + 1], out, size)
            i = stop[span]
            span += 1
        size = _copy(data, i, end, out, size)
        bounds[text + 1] = size



@inlined
def _copy(data, i, end, out, size):
    for k in range(i, end):
        out[size + k - i] = data[k]
    return size + end - i
