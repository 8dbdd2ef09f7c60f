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
from tokenizer.weights import WeightedPieces, integer_weights, weigh

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
    assert integer_weights(weights, ["fr", "en"]) == (integers, scale)


def test_integers_are_the_nearest_steps() -> None:
    weights = {"en": 0.3, "fr": 1 / 7, "zh": 1234.5678}
    found, scale = integer_weights(weights, weights)
    for name, weight in weights.items():
        assert abs(Fraction(found[name], scale) - Fraction(weight)) <= Fraction(1, 2**21)


@pytest.mark.parametrize("weight", [-1.0, 1e-9, 1e7, float("nan"), float("inf")])
def test_impossible_weights(weight: float) -> None:
    with pytest.raises(TokenizerError, match="en has the weight"):
        integer_weights({"en": weight}, ["en", "fr"])


def test_unknown_language_and_nothing_left() -> None:
    with pytest.raises(TokenizerError, match=r"holds no 'frr'.*'fr'"):
        integer_weights({"frr": 1}, ["en", "fr"])
    with pytest.raises(TokenizerError, match="every language has weight 0"):
        integer_weights({"en": 0, "fr": 0}, ["en", "fr"])


def test_equal_weights_change_nothing() -> None:
    integers, scale = integer_weights({}, ["en", "fr", "zh"])
    weighted = weigh([table_of(COUNTS)], integers, scale)
    assert content(weighted) == {b"a": 3, b"b": 12, b"\xe4": 2**40} and weighted.scale == 1


def test_weighted_sums_are_exact_in_any_order() -> None:
    chance = random.Random(5)
    counts: Counts = {(lang, b"%d" % n): chance.randrange(2**32) for lang in ("en", "fr", "zh") for n in range(40)}
    integers, scale = integer_weights({"en": 0.1, "zh": 7.77}, ["en", "fr", "zh"])
    exact: Counter[bytes] = Counter()
    for (language, piece), count in counts.items():
        exact[piece] += count * integers[language]
    table = table_of(counts)
    for size in (1, 9, 1000):
        slices = list(in_slices(table, size))
        chance.shuffle(slices)
        assert content(weigh(slices, integers, scale)) == exact


def test_sums_beyond_64_bits_are_refused() -> None:
    integers, scale = integer_weights({"en": 0.3}, ["en"])
    with pytest.raises(TokenizerError, match="smaller language weights"):
        weigh([table_of({("en", b"a"): 2**50})], integers, scale)


def test_no_pieces() -> None:
    assert content(weigh([pa.Table.from_batches([], table_of({}).schema)], {}, 1)) == {}
