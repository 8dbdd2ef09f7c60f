"""Axes: round marks, edges at limits, the bulk of the values within."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roots_pipeline.report.axes import bin_edges, logarithmic_ticks, round_step, ticks

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50)


@pytest.mark.parametrize(
    ("span", "parts", "step"), [(1.0, 5, 0.2), (97, 10, 10), (0, 4, 1), (4e-7, 4, 1e-7), (11, 5, 5)]
)
def test_round_step(span: float, parts: int, step: float) -> None:
    assert math.isclose(round_step(span, parts), step)


def test_ticks_are_exact_decimals() -> None:
    assert ticks(0, 0.5) == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert ticks(-3, 12) == [0, 5, 10]
    assert logarithmic_ticks(20, 90_000) == [100, 1000, 10_000]
    assert logarithmic_ticks(20, 600) == [20, 50, 100, 200, 500]


def test_a_bound_of_a_linear_axis_is_an_edge() -> None:
    values = np.random.default_rng(0).beta(1, 9, 1000)
    for bound in (0.1, 0.15, 0.3):
        edges, logarithmic = bin_edges(values, [bound])
        assert not logarithmic and bound in edges


def test_wide_counts_get_a_logarithmic_axis_and_shares_never() -> None:
    draw = np.random.default_rng(1)
    edges, logarithmic = bin_edges(np.floor(np.exp(draw.normal(6, 2, 1000))) + 1, [50, 100_000])
    assert logarithmic and edges[-1] >= 99_999 and len(edges) < 60
    assert not bin_edges(draw.beta(0.1, 5, 1000), [])[1]


def test_whole_numbers_get_bins_of_whole_numbers() -> None:
    edges, _ = bin_edges(np.array([0.0, 1, 2, 3, 8]), [2])
    assert edges.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_one_value_and_no_value() -> None:
    assert len(bin_edges(np.array([0.25]), [])[0]) >= 2
    assert len(bin_edges(np.array([]), [1.0])[0]) == 0


@given(VALUES, st.lists(st.floats(0.001, 1000), max_size=2))
def test_edges_rise_and_hold_bulk_and_bounds(values: list[float], bounds: list[float]) -> None:
    edges, _ = bin_edges(np.array(values), bounds)
    assert len(edges) >= 2 and np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0) and len(edges) < 200
    slack = 1e-9 * max(1.0, *map(abs, edges.tolist()))
    assert all(edges[0] - slack <= bound <= edges[-1] + slack for bound in bounds)
    middle = float(np.quantile(values, 0.5, method="lower"))
    if not bin_edges(np.array(values), bounds)[1]:
        assert edges[0] - slack <= middle <= edges[-1] + slack


def test_extremes_of_floating_point() -> None:
    for values in ([1e308, -1e308], [5e-324, 1.0], [0.0, 0.0], [1e15, 1e15 + 1], [1e15, 1e15 + 0.125], [3e307, 9e307]):
        edges, _ = bin_edges(np.array(values), [])
        assert np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0)
