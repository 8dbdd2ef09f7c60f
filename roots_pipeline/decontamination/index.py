"""The index of evaluation items: what a scan of texts looks for, and what each find is worth. `indexing` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.contamination_characters import WORD_SIZE
from roots_pipeline.text.contamination_cover import cover
from roots_pipeline.text.contamination_tables import Tables

Rule = Literal["overlap", "jaccard"]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Matching:
    """What an index depends on besides the items; the fields are explained in `stage.Decontaminate`."""

    rule: Rule = "overlap"
    ngram: int = 13
    common_items: int = 10
    short_minimum: float = 4.0
    short_anywhere: float = 6.0
    anywhere_characters: int = 30


def different(values: Ints) -> Ints:
    """The different ones of some numbers, ascending; much faster than `np.unique` for a few thousand."""
    ordered = np.sort(values)
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


class Tally(NamedTuple):
    """What became of the items of one set."""

    name: str
    items: int
    repeated: int  # the same words as an earlier item of the set, which stands for both
    by_ngrams: int
    as_a_whole: int
    too_short: int
    too_common: int  # no n-gram of it is worth anything

    @property
    def unsearchable(self) -> int:
        """Items that cannot be found."""
        return self.too_short + self.too_common


@dataclass(frozen=True, slots=True)
class EvaluationIndex:
    """Items are numbered over all sets in order; n-grams that are worth something, in order of their hash.

    Arrays over words hold all items one after the other: those of item k are `first[k]:first[k + 1]`.
    """

    tallies: tuple[Tally, ...]  # of sets
    ids: tuple[str, ...]  # of items
    set_of: Ints  # item -> set
    ngram: int
    first: Ints
    sizes: npt.NDArray[np.uint8]  # of words, in twelfths
    grams: Ints  # the n-gram that begins at a word, -1 for none
    weights: Weights  # what that n-gram is worth for the item
    place_first: Ints  # n-gram g begins at the words places[place_first[g]:place_first[g + 1]], ascending
    places: Ints
    gram_counts: Ints  # different n-grams of each item
    totals: npt.NDArray[np.float64]  # weighted words of each item; 0 if n-grams cannot find it
    shorts: Ints  # number of a short item -> item
    tables: Tables

    def name(self, item: int) -> str:
        """`<set>/<item id>`."""
        return f"{self.tallies[self.set_of[item]].name}/{self.ids[item]}"

    def words_in(self, item: int) -> float:
        """How many words an item has."""
        return float(self.sizes[self.first[item] : self.first[item + 1]].sum(dtype=np.int64)) / WORD_SIZE

    def grams_of(self, item: int) -> Ints:
        """The n-gram that begins at each word of an item, -1 for none."""
        return self.grams[self.first[item] : self.first[item + 1]]

    def weights_of(self, item: int) -> Weights:
        """What each n-gram of `grams_of` is worth."""
        return self.weights[self.first[item] : self.first[item + 1]]

    def cover(self, item: int, found: Bools, weights: Weights) -> tuple[float, float]:
        """(words covered, longest run) of an item if these of its n-grams are found (`text.contamination_cover`)."""
        return cover(found, weights, self.sizes[self.first[item] : self.first[item + 1]], self.ngram)

    def has(self, item: int, grams: Ints) -> Bools:
        """For each word of an item whether the n-gram that begins there is one of these (ascending)."""
        of_item = self.grams_of(item)
        if not len(grams):
            return np.zeros(len(of_item), np.bool_)
        same: Bools = grams[np.minimum(np.searchsorted(grams, of_item), len(grams) - 1)] == of_item
        return same

    def places_of(self, grams: Ints) -> tuple[Ints, Ints]:
        """Where these n-grams begin in the items, ascending, and the item of each place."""
        counts = self.place_first[grams + 1] - self.place_first[grams]
        numbers = np.repeat(self.place_first[grams] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        places = np.sort(self.places[numbers])
        return places, np.searchsorted(self.first, places, side="right") - 1
