"""Curves over training steps as SVG, with levels to compare them with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from roots_pipeline.report.axes import ticks
from roots_pipeline.report.facts import Curve
from roots_pipeline.report.frame import Frame, Scale, columns, rows
from roots_pipeline.report.numbers import short
from roots_pipeline.report.svg import drawing, element, points


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
    children = [*rows(frame, y, ticks(low, high, 4 if height < 250 else 7)), *columns(frame, x, marks)]
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
