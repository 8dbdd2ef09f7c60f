"""Evaluation items become an index: their n-grams, what each is worth, and the items too short for n-grams.

The index is a function of the items and of `Matching` alone, so every worker builds the same one.

Items are words as `text.contamination_characters` folds them: case, accents, punctuation and white space do not count;
a Han character is half a word, another letter of a script without spaces a quarter. Of items of one set with the same
words the first stands for all.

Rule `overlap`:
- An item of at least `ngram` words is all its n-grams (of words, or single letters of the scripts said).
- An n-gram in k items of a set is worth 1/k for each of them, and nothing if k > `common_items`: instructions and
  templates stand in many items. One with fewer than 4 different words that have a letter is worth nothing either; rows
  of numbers would be such.
- A shorter item of at least `short_minimum` words, 4 different ones with a letter and 25 characters (a Han character
  counts as 3) is one n-gram of its own length. Of at least `short_anywhere` words or `anywhere_characters` characters
  it counts anywhere in a text, else only between two borders. Shorter sentences are everyday phrases and stand in any
  novel.
- What is left cannot be looked for; `Tally` says how many items that is.

Rule `jaccard`: an item is the set of all its n-grams; one that is shorter than an n-gram is a single n-gram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import SourceError, StaleDataError
from roots_pipeline.decontamination.evaluations import Evaluation, content_of
from roots_pipeline.decontamination.index import Bools, EvaluationIndex, Ints, Matching, Tally, Weights
from roots_pipeline.decontamination.items import Item, read_items
from roots_pipeline.text.contamination_characters import WORD_SIZE, folding
from roots_pipeline.text.contamination_cover import cover_fully
from roots_pipeline.text.contamination_tables import (
    ANYWHERE,
    BOUNDED,
    WHOLE,
    Hashes,
    Shorts,
    Tables,
    make_anchors,
    make_tables,
    run_hashes,
    varied_runs,
    window_hashes,
)
from roots_pipeline.text.contamination_words import Words, read_words

DIFFERENT_WORDS = 4
SHORT_CHARACTERS = 25


@lru_cache(maxsize=2)
def load_index(evaluations: tuple[Evaluation, ...], matching: Matching, content: str) -> EvaluationIndex:
    """The index of the sets, built once in a process. `content` is what `content_of` said when the run was planned.

    Raises SourceError for a set that cannot be read or of which no item can be looked for, StaleDataError if its files
    have changed since.
    """
    check_content(evaluations, content)
    index = build_index([(evaluation.name, read_items(evaluation)) for evaluation in evaluations], matching)
    for evaluation, tally in zip(evaluations, index.tallies, strict=True):
        if not tally.by_ngrams + tally.as_a_whole:
            raise SourceError(f"no item of evaluation set '{tally.name}' can be looked for: {tally.too_short} are too "
                              f"short, every n-gram of {tally.too_common} is common.", where=evaluation.path,
                              hint="Name more `fields`, or change `short_minimum` or `common_items`.")
    return index


def check_content(evaluations: Sequence[Evaluation], content: str) -> None:
    """Raise StaleDataError if the files of the sets are not any more what `content_of` said."""
    if content_of(evaluations) != content:
        raise StaleDataError("the files of an evaluation set have changed since this run was planned.",
                             where=", ".join(evaluation.path for evaluation in evaluations),
                             hint="Run the same command again.")


def found_as(items: Sequence[Item]) -> list[str]:
    """What each item of a set is called where it is found: as the first of the set with the same words."""
    read = _read([("", items)])
    first = dict(zip(read.whole[new := _first_of_their_words(read)].tolist(),
                     (item.id for item, own in zip(items, new.tolist(), strict=True) if own), strict=True))
    return [first[whole] if length else item.id
            for item, whole, length in zip(items, read.whole.tolist(), read.lengths.tolist(), strict=True)]


def build_index(sets: Sequence[tuple[str, Sequence[Item]]], matching: Matching) -> EvaluationIndex:
    """The index of the items of these sets (name, items)."""
    items = _read(sets)
    new = _first_of_their_words(items)
    long, short = _by_length(items, new, matching)
    grams = _find_grams(items, long, matching)
    worth = _worth(items, grams, matching)
    # Only n-grams that are worth something to some item are looked for; `number` counts them.
    posted = worth > 0
    listed = np.zeros(len(grams.hashes), np.bool_)
    listed[grams.pair_gram[posted]] = True
    number = np.where(listed, np.cumsum(listed) - 1, -1)
    at, weights = np.full(len(items.words.hashes), -1), np.zeros(len(items.words.hashes), np.float32)
    at[grams.places] = np.where(posted, number[grams.pair_gram], -1)[grams.pair_at]
    weights[grams.places] = worth[grams.pair_at]
    places = np.flatnonzero(at >= 0)
    places = places[np.argsort(at[places], kind="stable")]
    totals = cover_fully(items.words.first, weights, items.words.sizes, matching.ngram)
    shorts = np.flatnonzero(short)
    return EvaluationIndex(
        tallies=_tally(items, new, long, short, totals), ids=items.ids, set_of=items.set_of, ngram=matching.ngram,
        first=items.words.first, sizes=items.words.sizes, grams=at, weights=weights,
        place_first=np.searchsorted(at[places], np.arange(int(listed.sum()) + 1)), places=places,
        gram_counts=np.bincount(grams.pair_item, minlength=len(items.ids)), totals=totals, shorts=shorts,
        tables=_tables(items, at, grams.hashes[listed], shorts, matching),
    )


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of all sets, as words."""

    names: tuple[str, ...]  # of sets
    ids: tuple[str, ...]
    set_of: Ints
    words: Words
    lengths: Ints  # units: words, or letters of scripts without spaces
    sizes: npt.NDArray[np.float64]  # words
    characters: Ints
    whole: Hashes  # of all words of an item


def _read(sets: Sequence[tuple[str, Sequence[Item]]]) -> _Items:
    texts = pa.array([item.text for _, items in sets for item in items], pa.large_string())
    words = read_words(*text_buffers(texts), folding())
    begins, ends = words.first[:-1], words.first[1:]
    twelfths = np.concatenate([[0], np.cumsum(words.sizes, dtype=np.int64)])
    characters = np.concatenate([[0], np.cumsum(words.lengths, dtype=np.int64)])
    return _Items(
        tuple(name for name, _ in sets), tuple(item.id for _, items in sets for item in items),
        np.repeat(np.arange(len(sets)), [len(items) for _, items in sets]), words, ends - begins,
        (twelfths[ends] - twelfths[begins]) / WORD_SIZE, characters[ends] - characters[begins],
        run_hashes(words.hashes, begins, ends, WHOLE),
    )


def _first_of_their_words(items: _Items) -> Bools:
    """Which items have words, and not those of an earlier item of their set."""
    order = np.lexsort((np.arange(len(items.ids)), items.whole, items.set_of))
    whole, of = items.whole[order], items.set_of[order]
    first = items.lengths > 0
    first[order[1:][(whole[1:] == whole[:-1]) & (of[1:] == of[:-1])]] = False
    return first


def _by_length(items: _Items, new: Bools, matching: Matching) -> tuple[Bools, Bools]:
    """Which items are looked for by n-grams, and which as a whole."""
    if matching.rule == "jaccard":
        return new, np.zeros(len(new), np.bool_)
    long = new & (items.sizes >= matching.ngram)
    short = new & ~long & (items.sizes >= matching.short_minimum) & (items.characters >= SHORT_CHARACTERS)
    begins, ends = items.words.first[:-1][short], items.words.first[1:][short]
    short[short] = varied_runs(items.words.hashes, items.words.letters, begins, ends, DIFFERENT_WORDS)
    return long, short


@dataclass(frozen=True, slots=True)
class _Grams:
    """Where n-grams begin, and the pairs of an n-gram and an item that has it."""

    places: Ints  # words of the items at which an n-gram begins
    pair_at: Ints  # which pair that is
    hashes: Hashes  # of the different n-grams, ascending
    pair_gram: Ints  # pairs are sorted by n-gram, then item
    pair_item: Ints


def _find_grams(items: _Items, long: Bools, matching: Matching) -> _Grams:
    words, size = items.words, matching.ngram
    item_of = np.repeat(np.arange(len(items.ids)), items.lengths)
    places = np.flatnonzero(long[item_of] & (np.arange(len(item_of)) + size <= words.first[1:][item_of]))
    hashes = window_hashes(words.hashes, size)[places]
    if matching.rule == "jaccard":
        tiny = long & (items.lengths < size)
        places = np.concatenate([places, words.first[:-1][tiny]])
        hashes = np.concatenate([hashes, items.whole[tiny]])
    different, gram = np.unique(hashes, return_inverse=True)
    pairs, pair_at = np.unique(gram * len(items.ids) + item_of[places], return_inverse=True)
    pair_gram, pair_item = np.divmod(pairs, len(items.ids))
    return _Grams(places, pair_at, different, pair_gram, pair_item)


def _worth(items: _Items, grams: _Grams, matching: Matching) -> Weights:
    """What each pair's n-gram is worth for its item."""
    if matching.rule == "jaccard":
        return np.ones(len(grams.pair_gram), np.float32)
    in_set = grams.pair_gram * len(items.names) + items.set_of[grams.pair_item]
    _, place, counts = np.unique(in_set, return_inverse=True, return_counts=True)
    sharing = counts[place]
    varied = varied_runs(items.words.hashes, items.words.letters, grams.places, grams.places + matching.ngram,
                         DIFFERENT_WORDS)
    good = np.zeros(len(grams.pair_gram), np.bool_)
    good[grams.pair_at] = varied
    return np.where(good & (sharing <= matching.common_items), 1 / sharing, 0).astype(np.float32)


def _tables(items: _Items, at: Ints, gram_hashes: Hashes, shorts: Ints, matching: Matching) -> Tables:
    """The tables; `at` is the n-gram that begins at each word."""
    words = items.words
    begins, ends, lengths = words.first[:-1][shorts], words.first[1:][shorts], items.lengths[shorts]
    anywhere = items.sizes[shorts] >= matching.short_anywhere
    if matching.anywhere_characters:
        anywhere |= items.characters[shorts] >= matching.anywhere_characters
    hashes, tails = np.empty(len(shorts), np.uint64), np.empty(len(shorts), np.uint64)
    tail_sizes = [0, 0]
    for number, (kind, mine) in enumerate(((ANYWHERE, anywhere), (BOUNDED, ~anywhere))):
        if mine.any():
            tail_sizes[number] = int(lengths[mine].min())
            hashes[mine] = run_hashes(words.hashes, begins[mine], ends[mine], kind)
            tails[mine] = run_hashes(words.hashes, ends[mine] - tail_sizes[number], ends[mine], kind)
    different, row = np.unique(tails, return_inverse=True)
    first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(different)))])
    gram_begins = np.flatnonzero(at >= 0)
    return make_tables(
        matching.ngram, matching.rule == "jaccard",
        make_anchors(words.hashes, gram_begins, np.full(len(gram_begins), matching.ngram), matching.ngram),
        make_anchors(words.hashes, begins[anywhere], lengths[anywhere], tail_sizes[0] or matching.ngram),
        gram_hashes, different,
        Shorts(tail_sizes[0], tail_sizes[1], lengths, hashes, first, np.argsort(row, kind="stable")),
    )


def _tally(items: _Items, new: Bools, long: Bools, short: Bools, totals: npt.NDArray[np.float64]) -> tuple[Tally, ...]:
    kinds = (np.ones(len(new), np.bool_), ~new & (items.lengths > 0), long & (totals > 0), short,
             (new | (items.lengths == 0)) & ~long & ~short, long & (totals == 0))
    counts = [np.bincount(items.set_of[kind], minlength=len(items.names)).tolist() for kind in kinds]
    return tuple(Tally(name, *row) for name, row in zip(items.names, zip(*counts, strict=True), strict=True))
