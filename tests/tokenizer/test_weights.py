"""Language weights become integers without rounding twice, and sums that no order can change."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest

from roots_pipeline.core.errors import TokenizerError
from tests.tokenizer.test_merge import Counts, in_slices, table_of
from tokenizer.weights import WeightedPieces, group_weights, integer_weights, weigh

GROUPS = [("en", "s"), ("fr", "s"), ("zh", "s")]
COUNTS: Counts = {("en", b"a"): 3, ("en", b"b"): 5, ("fr", b"b"): 7, ("zh", b"\xe4"): 2**40}


def content(weighted: WeightedPieces) -> dict[bytes, int]:
    data, bounds = weighted.data.tobytes(), weighted.offsets.tolist()
    pieces = [data[start:stop] for start, stop in pairwise(bounds)]
    return dict(zip(pieces, weighted.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("weights", "integers", "scale"),
    [
        ({}, {"en": 1, "fr": 1}, 1),
        ({"en": 1.0, "fr": 1.0}, {"en": 1, "fr": 1}, 1),
        ({"en": 2.0, "fr": 2.0}, {"en": 2, "fr": 2}, 1),
        ({"en": 0.5}, {"en": 1, "fr": 2}, 2),
        ({"en": 0.75, "fr": 3}, {"en": 3, "fr": 12}, 4),
        ({"en": 0}, {"en": 0, "fr": 1}, 1),
        ({"en": 2**-20}, {"en": 1, "fr": 2**20}, 2**20),
    ],
)
def test_integers(weights: dict[str, float], integers: dict[str, int], scale: int) -> None:
    found = group_weights(GROUPS[:2], weights, {})
    assert integer_weights(found) == ({(name, "s"): value for name, value in integers.items()}, scale)


def test_integers_are_the_nearest_steps() -> None:
    weights = {"en": 0.3, "fr": 1 / 7, "zh": 1234.5678}
    found, scale = integer_weights(group_weights(GROUPS, weights, {}))
    for name, weight in weights.items():
        assert abs(Fraction(found[name, "s"], scale) - Fraction(weight)) <= Fraction(1, 2**21)


@pytest.mark.parametrize("weight", [-1.0, 1e-9, 1e7, float("nan"), float("inf")])
def test_impossible_weights(weight: float) -> None:
    with pytest.raises(TokenizerError, match="en has the weight"):
        integer_weights(group_weights(GROUPS, {"en": weight}, {}))


def test_unknown_language_and_nothing_left() -> None:
    with pytest.raises(TokenizerError, match=r"holds no 'frr'.*'fr'"):
        group_weights(GROUPS, {"frr": 1}, {})
    with pytest.raises(TokenizerError, match="every language has weight 0"):
        integer_weights(group_weights(GROUPS[:2], {"en": 0, "fr": 0}, {}))


def test_equal_weights_change_nothing() -> None:
    integers, scale = integer_weights(group_weights(GROUPS, {}, {}))
    weighted = weigh([table_of(COUNTS)], integers, scale)
    assert content(weighted) == {b"a": 3, b"b": 12, b"\xe4": 2**40} and weighted.scale == 1


def test_weighted_sums_are_exact_in_any_order() -> None:
    chance = random.Random(5)
    counts: Counts = {(lang, b"%d" % n): chance.randrange(2**32) for lang in ("en", "fr", "zh") for n in range(40)}
    integers, scale = integer_weights(group_weights(GROUPS, {"en": 0.1, "zh": 7.77}, {}))
    exact: Counter[bytes] = Counter()
    for (language, piece), count in counts.items():
        exact[piece] += count * integers[language, "s"]
    table = table_of(counts)
    for size in (1, 9, 1000):
        slices = list(in_slices(table, size))
        chance.shuffle(slices)
        assert content(weigh(slices, integers, scale)) == exact


def test_sums_beyond_64_bits_are_refused() -> None:
    integers, scale = integer_weights(group_weights(GROUPS[:1], {"en": 0.3}, {}))
    with pytest.raises(TokenizerError, match="smaller language weights"):
        weigh([table_of({("en", b"a"): 2**50})], integers, scale)


def test_no_pieces() -> None:
    assert content(weigh([pa.Table.from_batches([], table_of({}).schema)], {}, 1)) == {}


def test_ratios_of_sources_multiply_the_weights_of_languages() -> None:
    groups = [("en", "a"), ("en", "b"), ("fr", "a")]
    found = group_weights(groups, {"en": 2.0}, {("en", "a"): 0.25})
    assert found == {("en", "a"): 0.5, ("en", "b"): 2.0, ("fr", "a"): 1.0}


def test_pruning_tells_its_error() -> None:
    counts: Counts = {("en", b"abc"): 2, ("en", b"xy"): 9, ("fr", b"abc"): 5, ("zh", b"q"): 1}
    integers, scale = integer_weights(group_weights(GROUPS, {"en": 0.5}, {}))
    weighted = weigh([table_of(counts)], integers, scale, minimum_count=3)
    assert content(weighted) == {b"xy": 9, b"abc": 10}
    # "abc" was seen twice in English at half weight, so no pair in it has lost more than 1.
    assert (weighted.pruned.pieces, weighted.pruned.occurrences, weighted.pruned.error) == (2, 3, 1.0)
    whole = weigh([table_of(counts)], integers, scale)
    assert whole.pruned.pieces == 0 and content(whole)[b"abc"] == 12
