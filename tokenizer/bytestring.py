# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compare and copy stretches of byte arrays. Nothing beyond an end is read."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from roots_pipeline.text.memory import inlined, load_eight


@inlined
def same_bytes(left_data, left, right_data, right, length):
    """Whether left_data[left:left + length] equals right_data[right:right + length]."""
    index = 0
    while index + 8 <= length:
        if load_eight(left_data, left + index) != load_eight(right_data, right + index):
            return False
        index += 8
    while index < length and left_data[left + index] == right_data[right + index]:
        index += 1
    return index == length


@inlined
def copy_bytes(target, place, source, start, length):
    """target[place:place + length] = source[start:start + length]; the stretches do not overlap."""
    for index in range(length):
        target[place + index] = source[start + index]


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written to. Arrow hands out both kinds; Numba would compile a kernel for each."""
    view = array.view()
    view.flags.writeable = False
    return view
