"""Blending: golden numbers, published vectors, and what must hold for any weights."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures import greedy as greedy_module
from mixtures.blend import blend, blend_everything, check_draws, normalise, published_weights, sample_targets
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.weights import read_preset
from tests.mixtures.golden import load, same
from tests.mixtures.plain import greedy


def test_published_vectors() -> None:
    assert blend([0.5, 0.3, 0.2], 12).groups.tolist() == [0, 1, 2, 0, 1, 0, 2, 0, 1, 0, 0, 1]
    assert blend([0.1, 0.9], 12).groups.tolist() == [1, 0, *[1] * 8, 0, 1]


def test_golden_blends(shared: Path) -> None:
    golden = load(shared, "02_blending")
    for case in golden["blends"]:
        assert normalise(case["weights"]).tolist() == [float.fromhex(value) for value in case["normalized_hex"]]
        found = blend(case["weights"], case["size"])
        assert same(case["dataset_index"], found.groups, "uint8")
        assert hashlib.sha256(found.groups.tobytes()).hexdigest() == case["core"]["dataset_index_sha256"]
        assert same(case["dataset_sample_index"], found.numbers)
        assert found.drawn.tolist() == case["counts"]
    assert len(golden["blends"]) == 26


def test_golden_targets(shared: Path) -> None:
    for case in load(shared, "02b_blend_sample_targets")["cases"]:
        weights = [float(value) for value in case["spec"][::2]]
        core, old = case["core"], case["bigscience"]
        assert [weight.hex() for weight in published_weights(weights, "bigscience")] == old["weights_hex"]
        assert [weight.hex() for weight in published_weights(weights, "megatron_core")] == core["weights_hex"]
        for place, total in enumerate(case["totals"]):
            assert sample_targets(weights, total, "bigscience") == [row[place] for row in old["samples"]]
            wanted = [row[place] for row in core["build_with_surplus_0_005"]]
            assert sample_targets(weights, total, "megatron_core") == wanted


def test_golden_exhaustive_blends(shared: Path) -> None:
    for case in load(shared, "02c_exhaustive_blending_core")["cases"]:
        found = blend_everything(case["sizes"])
        assert same(case["dataset_index"], found.groups)
        assert same(case["dataset_sample_index"], found.numbers)
        assert found.drawn.tolist() == case["sizes"]


def test_golden_mix_of_bloom(shared: Path) -> None:
    golden = load(shared, "02d_bloom_mix")
    preset = {entry.name: entry.weight for entry in read_preset("roots")}
    assert [preset[name] for name in golden["names"]] == golden["ratios"]
    weights = published_weights(golden["ratios"], "bigscience")
    assert [weight.hex() for weight in weights] == golden["weights_after_first_normalisation_hex"]
    assert [float(weight).hex() for weight in normalise(weights)] == golden["weights_used_hex"]
    targets = [row[0] for row in golden["sample_targets_train_valid_test"]]
    assert sample_targets(golden["ratios"], 220_000_000, "bigscience") == targets
    assert sum(targets) == golden["sum_of_train_targets"]
    for prefix in golden["prefixes"]:
        found = blend(weights, prefix["size"])
        assert same(prefix["dataset_index"], found.groups, "uint8")
        assert same(prefix["dataset_sample_index"], found.numbers)
        assert found.drawn.tolist() == prefix["counts"]
    assert blend(weights, 300).groups.tolist() == golden["first_300_dataset_index"]


weights_of_groups = st.lists(st.one_of(st.floats(1e-6, 1), st.floats(0.5, 100)), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(weights_of_groups, st.integers(1, 400))
def test_any_weights(weights: list[float], samples: int) -> None:
    found = blend(weights, samples)
    shares = normalise(weights)
    assert list(zip(found.groups.tolist(), found.numbers.tolist(), strict=True)) == greedy(shares.tolist(), samples)
    assert np.bincount(found.groups, minlength=len(weights)).tolist() == found.drawn.tolist()
    # No group gets one sample more than its share; so the targets of either variant suffice.
    assert np.all(found.drawn - samples * shares < 1 + 1e-9)
    for variant in ("bigscience", "megatron_core"):
        check_draws(["?"] * len(weights), found.drawn.tolist(), sample_targets(weights, samples, variant))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=60), st.integers(1, 500))
def test_weights_are_respected(weights: list[float], samples: int) -> None:
    """Never a whole sample too many; the published rule may leave a group a little more than one sample behind."""
    excess = blend(weights, samples).drawn - samples * normalise(weights)
    assert np.all(excess < 1 + 1e-9)
    assert np.all(excess > (-1 if len(weights) <= 2 else -2))


def draw_both(shares: np.ndarray[Any, np.dtype[np.float64]], limits: list[int] | None, samples: int) -> list[Any]:
    """What either kernel makes of the same blend."""
    found = []
    for kernel in (greedy_module._draw_of_few, greedy_module._draw_of_many):
        groups, numbers = np.zeros(samples, np.int16), np.zeros(samples, np.int64)
        drawn = np.zeros(len(shares), np.int64)
        most = np.full(len(shares), np.iinfo(np.int64).max) if limits is None else np.array(limits, np.int64)
        kernel(shares, most, groups, numbers, drawn)
        found.append((groups.tolist(), numbers.tolist(), drawn.tolist()))
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1), st.sampled_from([0.25, 0.5, 1.0])), min_size=1, max_size=40)
       .filter(any), st.integers(1, 3000))  # fmt: skip
def test_sleeping_groups_change_no_choice(weights: list[float], samples: int) -> None:
    """Ties, groups without weight, and weights of every size: the kernel for many groups draws as the plain one."""
    few, many = draw_both(normalise(weights), None, samples)
    assert few == many


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 200)), min_size=1, max_size=40).filter(any))
def test_sleeping_groups_of_few_samples(sizes: list[int]) -> None:
    few, many = draw_both(np.array(sizes) / sum(sizes), sizes, sum(sizes))
    assert few == many and many[2] == sizes


@pytest.mark.parametrize(("groups", "samples"), [(128, 300_000), (300, 200_000), (5000, 40_000)])
def test_many_groups_over_many_samples(groups: int, samples: int) -> None:
    for spread in (0.1, 1.0, 100.0):
        few, many = draw_both(np.random.RandomState(groups).dirichlet(np.full(groups, spread)), None, samples)
        assert few == many
    few, many = draw_both(np.full(groups, 1 / groups), None, 3 * groups)
    assert few == many and many[0] == [*range(groups)] * 3


def test_more_groups_than_a_byte_holds() -> None:
    found = blend([1.0] * 300, 600)
    assert found.groups.dtype == np.int16 and found.groups.tolist() == [*range(300)] * 2
    many = blend([1.0] * 40_000, 40_000)
    assert many.groups.dtype == np.int32 and many.groups.tolist() == [*range(40_000)]


def test_drawing_too_much_is_an_error() -> None:
    with pytest.raises(MixtureError, match=r"group news\.fr is drawn 7 times but holds 6 samples"):
        check_draws(["web.en", "news.fr"], [3, 7], [3, 6])


def test_bloom_targets_cover_every_draw() -> None:
    """The published surplus of half a percent leaves room: ceil(n w 1.005) >= ceil(n w)."""
    ratios = [entry.weight for entry in read_preset("roots")]
    targets = sample_targets(ratios, 220_000_000, "bigscience")
    assert all(target >= math.ceil(220_000_000 * ratio) for target, ratio in zip(targets, ratios, strict=True))
