"""The verdict over all documents that hold something of one item; the rules are stated in `stage`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roots_pipeline.decontamination.evidence import measure
from roots_pipeline.decontamination.index import EvaluationIndex, Ints, different

NEARLY_WHOLE = 0.8
SMALLEST_TOTAL = 0.5  # of what the total was before common n-grams were taken out


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on a document is contaminated; the fields are explained in `stage.Decontaminate`."""

    threshold: float
    long_match: float
    common_documents: int

    def reached(self, overlap: float, run: float) -> bool:
        """Whether a document with this evidence is contaminated."""
        return (overlap > 0 and overlap >= self.threshold) or run >= self.long_match > 0

    def reachable(self, overlap: float, run: float) -> bool:
        """Whether that may still turn out, although common n-grams are not known yet."""
        return overlap >= self.threshold * SMALLEST_TOTAL or run >= self.long_match > 0

    def too_many(self, documents: int) -> bool:
        """Whether what so many documents have is common."""
        return documents > self.common_documents > 0


class Counts(NamedTuple):
    """N-grams, some of them perhaps repeatedly, and how many documents have each."""

    grams: Ints
    documents: Ints


class Judged(NamedTuple):
    """What came out for one document and item."""

    overlap: float
    words: float  # of the item that are covered, weighted
    contaminated: bool
    found: Ints  # what of the item contaminates the document, as in the working column


def judge_item(
    index: EvaluationIndex, item: int, holdings: Sequence[Ints], times: Sequence[int], strays: Counts, limits: Limits
) -> list[Judged]:
    """Judge documents by the n-grams of an item that each holds (ascending, not repeated).

    `times`: how many documents have each of `holdings`. `strays`: the n-grams of all further documents, which hold too
    little of the item to need a verdict.
    """
    of_item, weights, total = index.grams_of(item), index.weights_of(item), float(index.totals[item])
    have = [index.has(item, grams) for grams in holdings]
    if limits.common_documents:
        partial = [Counts(grams, np.full_like(grams, often)) for grams, has, often
                   in zip(holdings, have, times, strict=True)
                   if measure(index, item, has, weights, total)[0] < NEARLY_WHOLE]
        counted = Counts(*map(np.concatenate, zip(strays, *partial, strict=True)))
        weights = np.where(index.has(item, _common(counted, limits)), np.float32(0), weights)
        left, _ = index.cover(item, of_item >= 0, weights)
        total = max(left, SMALLEST_TOTAL * total)
    worth = different(of_item[weights > 0])
    judged = []
    for grams, has in zip(holdings, have, strict=True):
        overlap, run = measure(index, item, has, weights, total)
        contaminated = limits.reached(overlap, run)
        found = np.intersect1d(grams, worth, assume_unique=True) if contaminated else worth[:0]
        judged.append(Judged(overlap, overlap * total, contaminated, found))
    return judged


def _common(counts: Counts, limits: Limits) -> Ints:
    grams, place = np.unique(counts.grams, return_inverse=True)
    documents = np.bincount(place, weights=counts.documents, minlength=len(grams))
    return grams[documents > limits.common_documents]
