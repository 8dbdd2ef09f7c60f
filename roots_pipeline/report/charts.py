"""The charts of the page, drawn as SVG here so that they need no script, print well and stay small.

Colours and fonts come from classes that the style sheet defines for light, dark and print; what a mark means is also
said in its `<title>`, which browsers show as a tooltip. In: facts. Out: safe markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from roots_pipeline.report.axes import logarithmic_ticks, ticks
from roots_pipeline.report.facts import Curve, Histogram, Split
from roots_pipeline.report.numbers import count, short
from roots_pipeline.report.svg import drawing, element, points

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


_LABEL_ROOM = 64.0  # between the lines of two limits


def histogram(found: Histogram) -> Markup:
    """Kept and rejected documents stacked over a measure, with a dashed line at each default limit."""
    frame = Frame(360, 190, left=44, right=12, top=22, bottom=24, gutter=16)
    edges = found.edges
    x = frame.across(edges[0], edges[-1], logarithmic=found.logarithmic)
    highest = max(split.total for split in (*found.bins, found.below, found.above))
    y = frame.up(0, highest)
    marks = logarithmic_ticks(edges[0], edges[-1]) if found.logarithmic else ticks(edges[0], edges[-1])
    bars = [(x(left), x(right), split, f"{short(left)} to {short(right)}")
            for left, right, split in zip(edges[:-1], edges[1:], found.bins, strict=True)]
    bars.append((frame.left, frame.begin - 5, found.below, f"below {short(edges[0])}"))
    bars.append((frame.end + 5, frame.width - frame.right, found.above, f"above {short(edges[-1])}"))
    children = [*_rows(frame, y, _whole_ticks(highest)), *_columns(frame, x, marks)]
    children += [_stack(y, left, right, split, where) for left, right, split, where in bars if split.total]
    children += _limits(frame, x, found)
    return drawing(frame.width, frame.height, f"Histogram of {found.measure}: {_said(found.counted)}.", children)


def _said(split: Split) -> str:
    return (f"{count(split.kept)} kept, {count(split.here)} rejected because of this measure, "
            f"{count(split.elsewhere)} for other reasons")


def _stack(y: Scale, left: float, right: float, split: Split, where: str) -> Markup:
    wide = max(right - left - (1.0 if right - left > 4 else 0.0), 0.8)
    parts = [element("title", f"{where}: {_said(split)}")]
    base = 0
    for name, documents in (("kept", split.kept), ("elsewhere", split.elsewhere), ("rejected", split.here)):
        if documents:
            tall = max(y(base) - y(base + documents), 1.5)  # a single document among thousands is still seen
            parts.append(element("rect", class_=name, x=left, y=y(base) - tall, width=wide, height=tall))
            base += documents
    return element("g", *parts)


def _limits(frame: Frame, x: Scale, found: Histogram) -> Iterator[Markup]:
    bounds = [(sign, bound) for limit in found.limits if limit.language is None
              for sign, bound in (("≥", limit.minimum), ("≤", limit.maximum))
              if bound is not None and found.edges[0] <= bound <= found.edges[-1]]
    places = [x(bound) for _, bound in bounds]
    # Labels stand between two limits, on the side of what is allowed, if there is room.
    inside = len(places) < 2 or max(places) - min(places) > 2 * _LABEL_ROOM
    for (sign, bound), place in zip(bounds, places, strict=True):
        left = (sign == "≤") == inside
        if (place - _LABEL_ROOM < frame.left) if left else (place + _LABEL_ROOM > frame.width):
            left = not left
        yield element(
            "g", element("title", f"limit: {sign} {short(bound)}"),
            element("line", class_="limit", x1=place, x2=place, y1=frame.top - 12, y2=frame.floor),
            element("text", f"{sign} {short(bound)}", class_="limit-label", x=place - 4 if left else place + 4,
                    y=frame.top - 5, text_anchor="end" if left else "start"),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One curve of a chart; `class_` chooses its colour, `dots` marks its points."""

    name: str
    curve: Curve
    class_: str
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line to compare with."""

    name: str
    value: float
    class_: str


def line_chart(title: str, lines: Sequence[Line], levels: Sequence[Level] = (), *, width: float = 360,
               height: float = 190, class_: str = "", from_zero: bool = False) -> Markup:
    """Curves over training steps, each with the band between its extremes where points were joined."""
    lows = [value for line in lines for value in line.curve.lows] + [level.value for level in levels]
    highs = [value for line in lines for value in line.curve.highs] + [level.value for level in levels]
    low, high = 0.0 if from_zero else min(lows), max(highs)
    pad = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    low, high = (low if from_zero else low - pad), high + pad
    frame = Frame(width, height, left=52, right=14, top=12, bottom=40)
    steps = [step for line in lines for step in line.curve.steps]
    x, y = frame.across(min(0.0, *steps), max(1.0, *steps)), frame.up(low, high)
    marks = [mark for mark in ticks(min(0.0, *steps), max(1.0, *steps), 4 if width < 500 else 8) if mark == int(mark)]
    children = [*_rows(frame, y, ticks(low, high, 4 if height < 250 else 7)), *_columns(frame, x, marks)]
    children.append(element("text", "step", class_="axis", x=(frame.begin + frame.end) / 2, y=height - 6,
                            text_anchor="middle"))
    for level in levels:
        tall = y(level.value)
        children.append(element(
            "g", element("title", f"{level.name}: {level.value:.4g}"),
            element("line", class_=f"level {level.class_}", x1=frame.begin, x2=frame.end, y1=tall, y2=tall),
        ))
    for line in lines:
        children += _line(line, x, y)
    said = "; ".join(f"{line.name} from {short(line.curve.means[0])} to {short(line.curve.last)}" for line in lines)
    compared = "".join(f"; {level.name} {short(level.value)}" for level in levels)
    return drawing(width, height, f"{title}: {said}{compared}.", children, class_)


def _line(line: Line, x: Scale, y: Scale) -> Iterator[Markup]:
    curve = line.curve
    if any(high > low for low, high in zip(curve.lows, curve.highs, strict=True)):
        upper = [(x(step), y(value)) for step, value in zip(curve.steps, curve.highs, strict=True)]
        lower = [(x(step), y(value)) for step, value in zip(curve.steps, curve.lows, strict=True)]
        yield element("polygon", class_=f"band {line.class_}", points=points([*upper, *reversed(lower)]))
    places = [(x(step), y(value)) for step, value in zip(curve.steps, curve.means, strict=True)]
    yield element("polyline", element("title", line.name), class_=f"line {line.class_}", points=points(places))
    if line.dots or len(places) == 1:
        for (left, top), step, value in zip(places, curve.steps, curve.means, strict=True):
            title = element("title", f"step {short(step)}: {line.name} {value:.4g}")
            yield element("circle", title, class_=f"dot {line.class_}", cx=left, cy=top, r=3)


def _rows(frame: Frame, y: Scale, marks: Sequence[float]) -> Iterator[Markup]:
    """Horizontal grid lines with their numbers."""
    for mark in marks:
        yield element("line", class_="grid", x1=frame.left, x2=frame.width - frame.right, y1=y(mark),
                      y2=y(mark))
        yield element("text", short(mark), class_="axis", x=frame.left - 6, y=y(mark) + 4, text_anchor="end")


def _columns(frame: Frame, x: Scale, marks: Sequence[float]) -> Iterator[Markup]:
    """The horizontal axis and the numbers below it."""
    yield element("line", class_="base", x1=frame.left, x2=frame.width - frame.right, y1=frame.floor, y2=frame.floor)
    for mark in marks:
        yield element("line", class_="tick", x1=x(mark), x2=x(mark), y1=frame.floor, y2=frame.floor + 4)
        yield element("text", short(mark), class_="axis", x=x(mark), y=frame.floor + 16, text_anchor="middle")


def _whole_ticks(highest: int) -> list[float]:
    return [mark for mark in ticks(0, highest, 4) if mark == int(mark)]
