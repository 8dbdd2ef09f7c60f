# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How much of an evaluation item is covered by n-grams that were found, each word counted once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import kernel

_TWELFTHS = 12.0


def cover(
    found: npt.NDArray[np.bool_], weights: npt.NDArray[np.float32], sizes: npt.NDArray[np.uint8], ngram: int
) -> tuple[float, float]:
    """(covered, longest run) of an item, in words, each counted with the weight of the n-gram that covers it.

    The item has as many words as the arrays are long, of `sizes` twelfths. `found[p]` says whether the n-gram that
    begins at word p was found, `weights[p]` is what that is worth, 0 to 1. A word in several found n-grams counts with
    the largest weight. A run is unbroken where each word is covered with a weight above 0.
    """
    covered, longest = _cover(found, weights, sizes, ngram)
    return covered, longest


def cover_fully(
    first: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], sizes: npt.NDArray[np.uint8], ngram: int
) -> npt.NDArray[np.float64]:
    """The words covered of each item `first[k]:first[k + 1]` if all its n-grams are found."""
    covered = np.empty(len(first) - 1)
    _cover_fully(first, weights, sizes, ngram, covered)
    return covered


@kernel
def _cover_fully(first, weights, sizes, ngram, covered):
    for item in range(covered.size):
        begin, end = first[item], first[item + 1]
        total, _ = _cover(weights[begin:end], weights[begin:end], sizes[begin:end], ngram)
        covered[item] = total


@kernel
def _cover(found, weights, sizes, ngram):
    covered = run = longest = 0.0
    for word in range(sizes.size):
        best = np.float32(0)
        for gram in range(max(0, word - ngram + 1), word + 1):
            if found[gram] and weights[gram] > best:
                best = weights[gram]
        share = best * sizes[word] / _TWELFTHS
        covered += share
        run = run + share if best > 0 else 0.0
        longest = max(longest, run)
    return covered, longest
