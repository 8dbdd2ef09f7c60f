"""SVG elements as safe markup: every attribute and every text is escaped here, so a chart cannot forget it.

Charts need no script, print well and stay small. Their colours and fonts come from classes that the style sheet
defines for light, dark and print; what a mark means is also in its `<title>`, which browsers show as a tooltip.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from roots_pipeline.report.safe_text import plain


def element(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """`<name attribute="…">children</name>`. Underscores in attribute names stand for hyphens, `class_` for class.

    Numbers are written with at most two decimals, hidden characters of text are made visible, None is left out.
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items() if value is not None
    )
    inside = Markup("").join(child if isinstance(child, Markup) else escape(plain(child)) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inside)


def drawing(width: float, height: float, label: str, children: Iterable[Markup], class_: str = "") -> Markup:
    """The outer element: scales with its box and is read out as one image with this label."""
    return element(
        "svg", *children, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label,
        class_=f"chart {class_}".strip(), xmlns="http://www.w3.org/2000/svg",
    )


def points(pairs: Iterable[tuple[float, float]]) -> str:
    """Coordinates for a polyline or polygon."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return plain(str(value), 20_000)
