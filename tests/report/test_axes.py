"""Axes: round marks, edges at limits, the bulk of the values within."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roots_pipeline.report.axes import choose_axis, logarithmic_ticks, round_step, ticks

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
        axis = choose_axis(values, [bound])
        assert not axis.logarithmic and not axis.whole and bound in axis.edges


def test_wide_counts_get_a_logarithmic_axis_and_shares_never() -> None:
    draw = np.random.default_rng(1)
    axis = choose_axis(np.floor(np.exp(draw.normal(6, 2, 1000))) + 1, [50, 100_000])
    assert axis.logarithmic and axis.edges[-1] >= 99_999 and len(axis.edges) < 60
    assert not choose_axis(draw.beta(0.1, 5, 1000), []).logarithmic


def test_whole_numbers_get_bins_of_whole_numbers() -> None:
    axis = choose_axis(np.array([0.0, 1, 2, 3, 8]), [2])
    assert axis.whole and axis.edges.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert not choose_axis(np.array([0.0, 1.0]), [0.3]).whole
    assert not choose_axis(np.arange(0.0, 90), []).whole  # several numbers a bin


def test_if_nearly_all_are_equal_the_others_are_shown() -> None:
    edges = choose_axis(np.array([0.0] * 999 + [0.02]), []).edges
    assert edges[-1] == 0.02 and len(edges) > 10


def test_one_value_and_no_value() -> None:
    assert len(choose_axis(np.array([0.25]), []).edges) >= 2
    assert len(choose_axis(np.array([]), [1.0]).edges) == 0


@given(VALUES, st.lists(st.floats(0.001, 1000), max_size=2))
def test_edges_rise_and_hold_bulk_and_bounds(values: list[float], bounds: list[float]) -> None:
    axis = choose_axis(np.array(values), bounds)
    edges = axis.edges
    assert 2 <= len(edges) < 200 and np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0)
    slack = 1e-9 * max(1.0, *map(abs, edges.tolist()))
    assert all(edges[0] - slack <= bound <= edges[-1] + slack for bound in bounds)
    if not axis.logarithmic:
        assert edges[0] - slack <= float(np.quantile(values, 0.5, method="lower")) <= edges[-1] + slack


def test_extremes_of_floating_point() -> None:
    for values in ([1e308, -1e308], [5e-324, 1.0], [0.0, 0.0], [1e15, 1e15 + 1], [1e15, 1e15 + 0.125], [3e307, 9e307]):
        edges = choose_axis(np.array(values), []).edges
        assert len(edges) >= 2 and np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0)
