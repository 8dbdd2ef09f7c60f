# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""How much of an evaluation item is covered by n-grams that were found, each word counted once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]
Sizes = npt.NDArray[np.uint8]

_TWELFTHS = 12.0


def cover(found: npt.NDArray[np.bool_], weights: Weights, sizes: Sizes, ngram: int) -> tuple[float, float]:
    """(covered, longest run) of an item, in words, each counted with the weight of the n-gram that covers it.

    The item has as many words as the arrays are long, of `sizes` twelfths. `found[p]` says whether the n-gram that
    begins at word p was found, `weights[p]` is what that is worth, 0 to 1. A word in several found n-grams counts with
    the largest weight. A run is unbroken where each word is covered with a weight above 0.
    """
    covered, longest = _cover(found, weights, sizes, ngram)
    return covered, longest


def cover_fully(first: Ints, weights: Weights, sizes: Sizes, ngram: int) -> Floats:
    """The words covered of each item `first[k]:first[k + 1]` if all its n-grams are found."""
    covered = np.empty(len(first) - 1)
    _cover_fully(first, weights, sizes, ngram, covered)
    return covered


def cover_each(places: Ints, bounds: Ints, weights: Weights, sizes: Sizes, ngram: int) -> tuple[Floats, Floats]:
    """(covered, longest run) of several items, without a look at the words that nothing covers.

    Item k has the found n-grams that begin at the words `places[bounds[k]:bounds[k + 1]]`, ascending, of all items'
    words; all of them are worth something.
    """
    covered, longest = np.empty(len(bounds) - 1), np.empty(len(bounds) - 1)
    _cover_each(places, bounds, weights, sizes, ngram, covered, longest)
    return covered, longest


@kernel
def _cover_fully(first, weights, sizes, ngram, covered):
    for item in range(covered.size):
        begin, end = first[item], first[item + 1]
        covered[item], _ = _cover(weights[begin:end], weights[begin:end], sizes[begin:end], ngram)


@kernel
def _cover_each(places, bounds, weights, sizes, ngram, covered, longest):
    for k in range(covered.size):
        first, last = bounds[k], bounds[k]  # the n-grams that cover the word are places[first:last]
        word = places[first]
        covered[k] = longest[k] = run = 0.0
        while True:
            while last < bounds[k + 1] and places[last] <= word:
                last += 1
            while first < last and places[first] <= word - ngram:
                first += 1
            if first == last:
                if last == bounds[k + 1]:
                    break
                run = 0.0
                word = places[last]
                continue
            best = np.float32(0)
            for gram in range(first, last):
                best = max(best, weights[places[gram]])
            share = best * sizes[word] / _TWELFTHS
            covered[k] += share
            run += share
            longest[k] = max(longest[k], run)
            word += 1


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
