"""A histogram as SVG: kept and rejected documents stacked over a measure, with the limits of the recipe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from roots_pipeline.report.axes import logarithmic_ticks, ticks
from roots_pipeline.report.facts import Histogram, Split
from roots_pipeline.report.frame import Frame, Scale, columns, rows
from roots_pipeline.report.numbers import count, short
from roots_pipeline.report.svg import drawing, element, points

_LABEL_ROOM = 64.0  # between the lines of two limits


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram, from `left` to `right` in the drawing; `where` says which values it counts."""

    left: float
    right: float
    split: Split
    where: str


_CUT_FROM, _CUT_TO = 6, 3  # a bar that many times as high as the next is cut, and the scale ends at that many times it


def histogram(found: Histogram) -> Markup:
    """Kept and rejected documents stacked over a measure, with a dashed line at each default limit.

    A single bar that would dwarf all others is cut, and its number written on it.
    """
    frame = Frame(360, 190, left=44, right=12, top=22, bottom=24, gutter=16)
    edges = found.edges
    x = frame.across(edges[0], edges[-1], logarithmic=found.logarithmic)
    bars = [bar for bar in _bars(frame, x, found) if bar.split.total]
    second, highest = sorted([0, *(bar.split.total for bar in bars)])[-2:]
    scale_end = second * _CUT_TO if highest > second * _CUT_FROM > 0 else highest
    y = frame.up(0, scale_end)
    marks = logarithmic_ticks(edges[0], edges[-1]) if found.logarithmic else ticks(edges[0], edges[-1])
    if found.whole:  # the number stands in the middle of its bar
        below = columns(frame, lambda value: x(value + 0.5), [mark for mark in marks if mark in edges[:-1]])
    else:
        below = columns(frame, x, marks)
    children = [*rows(frame, y, _whole_ticks(scale_end)), *below]
    for bar in bars:
        # The parts of a bar that is cut keep their proportions.
        top = min(bar.split.total, scale_end)
        children.append(_stack(frame.up(0, scale_end * bar.split.total / top), bar, cut=top < bar.split.total))
    children += _limits(frame, x, found)
    return drawing(frame.width, frame.height, f"Histogram of {found.measure}: {_said(found.counted)}.", children)


def _bars(frame: Frame, x: Scale, found: Histogram) -> Iterator[Bar]:
    edges = found.edges
    for left, right, split in zip(edges[:-1], edges[1:], found.bins, strict=True):
        where = short(left) if found.whole else f"{short(left)} to {short(right)}"
        yield Bar(x(left), x(right), split, where)
    yield Bar(frame.left, frame.begin - 5, found.below, f"below {short(edges[0])}")
    yield Bar(frame.end + 5, frame.width - frame.right, found.above, f"above {short(edges[-1])}")


def _said(split: Split) -> str:
    return (f"{count(split.kept)} kept, {count(split.here)} rejected because of this measure, "
            f"{count(split.elsewhere)} for other reasons")


def _stack(y: Scale, bar: Bar, *, cut: bool) -> Markup:
    split, left, right = bar.split, bar.left, bar.right
    wide = max(right - left - (1.0 if right - left > 4 else 0.0), 0.8)
    parts = [element("title", f"{bar.where}: {_said(split)}")]
    base = 0
    for name, documents in (("kept", split.kept), ("elsewhere", split.elsewhere), ("rejected", split.here)):
        if documents:
            tall = max(y(base) - y(base + documents), 1.5)  # a single document among thousands is still seen
            parts.append(element("rect", class_=name, x=left, y=y(base) - tall, width=wide, height=tall))
            base += documents
    if cut:
        top = y(base)
        gap = [(left - 2, top + 17), (left + wide + 2, top + 11), (left + wide + 2, top + 15), (left - 2, top + 21)]
        parts.append(element("polygon", class_="cut", points=points(gap)))
        parts.append(element("text", count(split.total), class_="axis", x=left + wide + 4, y=top + 9))
    return element("g", *parts)


def _limits(frame: Frame, x: Scale, found: Histogram) -> Iterator[Markup]:
    bounds = [(sign, bound) for limit in found.limits if limit.language is None
              for sign, bound in (("≥", limit.minimum), ("≤", limit.maximum))
              if bound is not None and found.edges[0] <= bound <= found.edges[-1]]
    # Among whole numbers, what is allowed up to a bound ends where the bar of the next number begins.
    places = [x(bound + 1 if found.whole and sign == "≤" else bound) for sign, bound in bounds]
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


def _whole_ticks(highest: int) -> list[float]:
    return [mark for mark in ticks(0, highest, 4) if mark == int(mark)]
