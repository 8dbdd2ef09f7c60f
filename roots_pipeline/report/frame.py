"""The frame of a chart: where values lie in the drawing, and the grid, axis and numbers around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from roots_pipeline.report.numbers import short
from roots_pipeline.report.svg import element

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Frame:
    """A drawing of `width` x `height` and the margins around its plotting area.

    `gutter` is kept free on both sides within the margins, for what lies outside the axis.
    """

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    gutter: float = 0.0

    @property
    def begin(self) -> float:
        """Left edge of the plotting area."""
        return self.left + self.gutter

    @property
    def end(self) -> float:
        """Right edge of the plotting area."""
        return self.width - self.right - self.gutter

    @property
    def floor(self) -> float:
        """Lower edge of the plotting area."""
        return self.height - self.bottom

    def across(self, low: float, high: float, *, logarithmic: bool = False) -> Scale:
        """Values from low to high, from the left edge to the right."""
        warp: Scale = math.log10 if logarithmic else float
        span = (warp(high) - warp(low)) or 1.0
        return lambda value: self.begin + (warp(value) - warp(low)) / span * (self.end - self.begin)

    def up(self, low: float, high: float) -> Scale:
        """Values from low to high, from the lower edge upwards."""
        span = (high - low) or 1.0
        return lambda value: self.floor - (value - low) / span * (self.floor - self.top)


def rows(frame: Frame, y: Scale, marks: Sequence[float]) -> Iterator[Markup]:
    """Horizontal grid lines with their numbers."""
    for mark in marks:
        yield element("line", class_="grid", x1=frame.left, x2=frame.width - frame.right, y1=y(mark),
                      y2=y(mark))
        yield element("text", short(mark), class_="axis", x=frame.left - 6, y=y(mark) + 4, text_anchor="end")


def columns(frame: Frame, x: Scale, marks: Sequence[float]) -> Iterator[Markup]:
    """The horizontal axis and the numbers below it."""
    yield element("line", class_="base", x1=frame.left, x2=frame.width - frame.right, y1=frame.floor, y2=frame.floor)
    for mark in marks:
        yield element("line", class_="tick", x1=x(mark), x2=x(mark), y1=frame.floor, y2=frame.floor + 4)
        yield element("text", short(mark), class_="axis", x=x(mark), y=frame.floor + 16, text_anchor="middle")
