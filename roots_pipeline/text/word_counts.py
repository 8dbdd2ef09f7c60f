# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How many words a text has, as far as it matters: counting stops at a limit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import SPACE, Classes, decode
from roots_pipeline.text.memory import kernel


def count_words(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], classes: Classes, most: int
) -> npt.NDArray[np.int64]:
    """The number of words of each text, `most` if there are as many or more. White space separates words."""
    counts = np.zeros(len(offsets) - 1, np.int64)
    _count_words(data, offsets, classes, most, counts)
    return counts


@kernel
def _count_words(data, offsets, classes, most, counts):
    for text in range(counts.size):
        i, end = offsets[text], offsets[text + 1]
        inside, words = False, 0
        while i < end and words < most:
            code, length = decode(data, i, end)
            space = classes[code] & SPACE != 0
            words += not space and not inside
            inside = not space
            i += length
        counts[text] = words
