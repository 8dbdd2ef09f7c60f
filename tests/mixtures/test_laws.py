"""Regressions and proposals on data whose law is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.experiment import Domain
from mixtures.laws import KINDS, Kind, Law, better, fit_law, leave_one_out, rank_correlation
from mixtures.proposal import caps_of, propose, under_caps
from roots_pipeline.core.errors import MixtureError

Floats = npt.NDArray[np.float64]
EVEN = np.array([0.25, 0.25, 0.25, 0.25])


def exponential(weights: Floats) -> Floats:
    """Bits per byte of four domains, each helped by its own weight and a little by its neighbour's."""
    helped = weights + 0.3 * np.roll(weights, 1, axis=1)
    return np.asarray(np.exp(0.8 - 1.5 * helped * np.array([1.0, 0.5, 2.0, 1.0])))


def swarm(count: int, seed: int = 0) -> Floats:
    return np.random.RandomState(seed).dirichlet([2.0] * 4, count)


def test_log_linear_recovers_the_law_it_assumes() -> None:
    others = swarm(200, 1)
    for floor in (0.0, 1.5):  # without and with a part that no weights take away
        weights = swarm(14)
        law = fit_law("log-linear", weights, floor + exponential(weights))
        assert np.allclose(law.predict(others), floor + exponential(others), rtol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_by_hand(kind: Kind) -> None:
    weights = swarm(6)
    bits = exponential(weights) * np.exp(np.random.RandomState(5).randn(6, 4) * 0.01)
    check = leave_one_out(kind, weights, bits, EVEN)
    for place in range(6):
        rest = [number for number in range(6) if number != place]
        alone = fit_law(kind, weights[rest], bits[rest]).predict(weights[[place]])[0]
        assert np.array_equal(alone, check.predictions[place])
    assert check.correlation == pytest.approx(rank_correlation(check.predictions @ EVEN, bits @ EVEN))
    assert check.error == pytest.approx(np.mean(np.abs((check.predictions - bits) @ EVEN)))


def test_noise_is_not_mistaken_for_a_law() -> None:
    """On pure noise, leave-one-out finds nothing: on average the correlation is not above zero by much."""
    found = []
    for seed in range(6):
        noise = np.exp(np.random.RandomState(seed).randn(12, 4) * 0.05)
        found.append(leave_one_out("log-linear", swarm(12, seed), noise, EVEN).correlation)
    assert np.nanmean(found) < 0.3


def test_the_better_law_is_used() -> None:
    weights = swarm(12)
    steps = 2.0 + 0.5 * (weights[:, [0]] > 0.25) * np.ones((1, 4))  # no exponential can follow a step
    checks = [leave_one_out(kind, weights, steps, EVEN) for kind in KINDS]
    assert better(checks).kind == "boosted trees"
    assert np.isnan(rank_correlation(np.ones(3), np.arange(3.0)))
    with pytest.raises(MixtureError, match="3 candidates are too few"):
        fit_law("log-linear", weights[:3], steps[:3])


weights_and_caps = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0, 1), min_size=n, max_size=n), st.lists(st.floats(0, 1), min_size=n, max_size=n)
    )
)


@settings(max_examples=100, deadline=None)
@given(weights_and_caps)
def test_weights_under_caps(drawn: tuple[list[float], list[float]]) -> None:
    weights, caps = np.array(drawn[0]), np.array(drawn[1])
    if weights.sum() < 1e-3 or caps.sum() < 1:
        return
    weights /= weights.sum()
    (found,) = under_caps(weights[None, :], caps)
    assert np.all(found <= caps + 1e-9) and np.all(found >= 0) and abs(found.sum() - 1) < 1e-9
    if np.all(weights <= caps):
        assert np.allclose(found, weights)


def test_the_proposal_keeps_the_caps_and_beats_the_base() -> None:
    tried = swarm(20)
    law = Law("log-linear", exponential)
    free = propose(law, EVEN, EVEN, np.ones(4), tried)
    assert exponential(free[None, :])[0] @ EVEN < exponential(EVEN[None, :])[0] @ EVEN
    caps = np.array([0.2, 1.0, 0.3, 1.0])
    capped = propose(law, EVEN, EVEN, caps, tried)
    assert np.all(capped <= caps + 1e-9) and np.isclose(capped.sum(), 1)
    assert exponential(free[None, :])[0] @ EVEN <= exponential(capped[None, :])[0] @ EVEN
    only = propose(law, EVEN, np.array([0.0, 0.0, 1.0, 0.0]), np.ones(4), tried)
    assert only[2] > free[2] > 0.25 and only.max() <= tried.max() + 1e-9


def test_caps_from_epochs() -> None:
    domains = [Domain("a", {"a.en": 100}, 0.5), Domain("b", {"b.en": 60, "b.fr": 40}, 0.5)]
    assert caps_of(domains, 4, 500).tolist() == [0.8, 0.8] and caps_of(domains, 9, 500).tolist() == [1.0, 1.0]
    with pytest.raises(MixtureError, match="1,000 tokens cannot be drawn from 200 with at most 4 epochs"):
        caps_of(domains, 4, 1000)
