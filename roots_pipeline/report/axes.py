"""Where an axis begins, ends, and has its marks: round numbers that a reader can say aloud."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_BINS = 40
_LOGARITHMIC_BINS = 50
_LOGARITHMIC = (1e2, 1e12)  # largest : smallest
_PER_DECADE = (20, 10, 5, 2, 1)


def round_step(span: float, parts: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that covers `span` in at most `parts` steps; 1 for no span."""
    least = span / parts
    if not (math.isfinite(least) and least > 1e-300):
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least * (1 - 1e-9))


def ticks(low: float, high: float, parts: int = 5) -> list[float]:
    """Round numbers within [low, high], about `parts` steps apart."""
    step = round_step(high - low, parts)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [_clean(number * step, step) for number in range(first, last + 1)]


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Powers of ten within [low, high]; also twice and five times these if there are few, thinned if many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1.0, 2.0, 5.0) if last - first <= 2 else (1.0,)
    every = math.ceil((last - first) / 6) or 1
    marks = [factor * 10.0**power for power in range(first, last + 1, every) for factor in factors]
    return [float(f"{mark:.6g}") for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]


@dataclass(frozen=True, slots=True)
class Axis:
    """Edges of the bins of a histogram, rising, at least two unless there was no value.

    `whole`: every bin is one whole number, from its lower edge to the next.
    """

    edges: npt.NDArray[np.float64]
    logarithmic: bool = False
    whole: bool = False


def choose_axis(values: npt.NDArray[np.float64], bounds: Sequence[float]) -> Axis:
    """An axis of up to 160 bins, mostly 20 to 40, over the bulk of finite `values` (all, or all but 1%) and `bounds`.

    Edges of a linear axis are multiples of a round width, and bounds are edges if they are round numbers too. The axis
    is logarithmic for wide ranges of positive numbers, unless these are shares (at most 1).
    """
    if not len(values):
        return Axis(np.empty(0))
    positive = values[values > 0]
    if len(positive) >= 0.9 * len(values) and all(bound > 0 for bound in bounds):
        low, high = _bulk(positive, bounds)
        if high > 1 and _LOGARITHMIC[0] <= high / low <= _LOGARITHMIC[1]:
            return Axis(_logarithmic_edges(low, high), logarithmic=True)
    low, high = _bulk(values, bounds)
    whole = all(number == math.floor(number) for number in (*bounds, *np.unique(values).tolist()))
    width = _round_width(high / _BINS - low / _BINS, bounds, 1.0 if whole else 0.0)
    first = math.floor(low / width + 1e-9)
    last = math.floor(high / width) if whole else math.ceil(high / width - 1e-9) - 1
    edges = np.unique([_clean(number * width, width) for number in range(first, max(first, last) + 2)])
    if len(edges) < 2:  # values that differ by less than floating point can tell apart share one bin
        return Axis(np.array([low, low + max(1.0, abs(low))]))
    return Axis(edges, whole=whole and width == 1.0)


def _round_width(least: float, bounds: Sequence[float], whole: float) -> float:
    """A round width of at least `least`, or down to a quarter of that if only then every bound is an edge."""
    widest = max(round_step(least, 1), whole)
    for parts in (1.0, 2.0, 4.0):
        width = max(round_step(least / parts, 1), whole)
        if all(math.isclose(bound / width, round(bound / width), abs_tol=1e-6) for bound in bounds):
            return width
    return widest


def _bulk(values: npt.NDArray[np.float64], bounds: Sequence[float]) -> tuple[float, float]:
    low = float(np.quantile(values, 0.005, method="lower"))
    high = float(np.quantile(values, 0.995, method="higher"))
    smallest, largest = float(values.min()), float(values.max())
    # All of them, if that does not squeeze the bulk; and if nearly all are equal, the few others are the news.
    if low == high or largest / 2 - smallest / 2 <= high - low:
        low, high = smallest, largest
    return min(low, *bounds, high), max(high, *bounds, low)


def _logarithmic_edges(low: float, high: float) -> npt.NDArray[np.float64]:
    decades = math.log10(high) - math.log10(low)
    per = next((count for count in _PER_DECADE if count * decades <= _LOGARITHMIC_BINS), 1)
    first = math.floor(math.log10(low) * per + 1e-9)
    last = math.ceil(math.log10(high) * per - 1e-9)
    return np.array([10.0 ** (k // per) * 10.0 ** (k % per / per) for k in range(first, last + 1)])


def _clean(number: float, step: float) -> float:
    """A multiple of a round step without the dust of binary fractions: 0.3, not 0.30000000000000004."""
    return round(number, max(0, 2 - math.floor(math.log10(step))))
