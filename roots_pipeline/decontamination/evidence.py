"""How much of which evaluation items a document holds.

Overlap (rule `overlap`): let w(g) be what n-gram g of an item is worth (see `indexing`), and F the n-grams of the item
that the document has. With each word of the item counted once and by its size,

    overlap = sum over words of max{w(g): g in F covers the word} / sum over words of max{w(g): g covers the word}

that is, the share of the item's distinctive words that lie in n-grams the document has, wherever they stand there. As
words are counted and not n-grams, one changed word costs a word, not 13 n-grams. The longest run is the same sum over
adjacent words of the item.

Jaccard (rule `jaccard`): n-grams that item and document share, by those that either has, both as sets.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.decontamination.index import Bools, EvaluationIndex, Ints, Weights
from roots_pipeline.text.contamination_cover import cover_each

Floats = npt.NDArray[np.float64]


class Evidence(NamedTuple):
    """What a document holds of the items of which it has any n-gram; arrays over these items."""

    items: Ints
    overlaps: Floats  # 0 to 1
    runs: Floats  # longest run, in words
    places: list[Ints]  # words of each item at which n-grams begin that the document has


def weigh(index: EvaluationIndex, grams: Ints) -> Evidence:
    """The evidence in a document that has these n-grams (ascending)."""
    places, item_of = index.places_of(grams)
    items, begins = np.unique(item_of, return_index=True)
    bounds = np.append(begins, len(places))
    covered, runs = cover_each(places, bounds, index.weights, index.sizes, index.ngram)
    overlaps = np.minimum(1.0, covered / index.totals[items])
    return Evidence(items, overlaps, runs, [places[a:b] for a, b in pairwise(bounds.tolist())])


def measure(index: EvaluationIndex, item: int, has: Bools, weights: Weights, total: float) -> tuple[float, float]:
    """(overlap, longest run) if the document has the n-grams marked by `has`, with these weights and this total."""
    covered, run = index.cover(item, has, weights)
    return min(1.0, covered / total) if total > 0 else 0.0, run


def best_jaccard(index: EvaluationIndex, grams: Ints, document_grams: int) -> tuple[int, float]:
    """(item, similarity) of the item most similar to a document of `document_grams` different n-grams.

    `grams` are those of them that the index has. Of equally similar items it is the first.
    """
    places, item_of = index.places_of(grams)
    pairs = np.unique(np.stack([item_of, index.grams[places]]), axis=1)
    items, shared = np.unique(pairs[0], return_counts=True)
    similar = shared / (index.gram_counts[items] + document_grams - shared)
    best = int(np.argmax(similar))
    return int(items[best]), float(similar[best])
