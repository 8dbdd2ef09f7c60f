"""The page of an experiment: predicted against measured, the trade-off of each domain, and the proposal.

In: what `fit` found. Out: one HTML file without scripts or links to elsewhere; plots are SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mixtures.experiment import BASE, Domain
from mixtures.fit import Comparison, Fitted
from roots_pipeline.core.storage import write_bytes

Floats = npt.NDArray[np.float64]
_COLOURS = ("#1f6f8b", "#c8553d", "#6a994e")
_WIDTH, _HEIGHT, _MARGIN = 300, 240, 48
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;"
    "text-align:right}td:first-child,th:first-child{text-align:left}figure{display:inline-block;margin:.4rem}"
    "figcaption{font-size:13px;text-align:center}svg text{font:11px system-ui,sans-serif;fill:#444}"
)


@dataclass(frozen=True, slots=True)
class Series:
    """Points with one colour: a name and (x, y, what a point is called)."""

    name: str
    points: list[tuple[float, float, str]]


def scatter(title: str, across: str, up: str, series: Sequence[Series], *, diagonal: bool = False) -> str:
    """An SVG figure of points; `diagonal` draws x = y and gives both axes one range."""
    xs = [x for one in series for x, _, _ in one.points]
    ys = [y for one in series for _, y, _ in one.points]
    left, right = _range(xs + ys if diagonal else xs)
    low, high = _range(xs + ys if diagonal else ys)

    def place(x: float, y: float) -> tuple[float, float]:
        inner, tall = _WIDTH - _MARGIN - 10, _HEIGHT - _MARGIN - 10
        return _MARGIN + (x - left) / (right - left) * inner, 10 + (high - y) / (high - low) * tall

    (x0, y0), (x1, y1) = place(left, low), place(right, high)
    parts = [f'<path d="M{x0:.1f} {y1:.1f}V{y0:.1f}H{x1:.1f}" fill="none" stroke="#999"/>']
    if diagonal:
        parts.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="#bbb" stroke-dasharray="4 3"/>')
    for value in (left, right):
        parts.append(f'<text x="{place(value, low)[0]:.1f}" y="{y0 + 14:.1f}" text-anchor="middle">{value:.3g}</text>')
    for value in (low, high):
        parts.append(f'<text x="{x0 - 4:.1f}" y="{place(left, value)[1] + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    parts.append(f'<text x="{(x0 + x1) / 2:.1f}" y="{y0 + 28:.1f}" text-anchor="middle">{escape(across)}</text>')
    middle = (y0 + y1) / 2
    parts.append(f'<text transform="rotate(-90 12 {middle:.1f})" x="12" y="{middle:.1f}" text-anchor="middle">'
                 f"{escape(up)}</text>")  # fmt: skip
    for number, one in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        for x, y, label in one.points:
            across_, up_ = place(x, y)
            parts.append(f'<circle cx="{across_:.1f}" cy="{up_:.1f}" r="3.5" fill="{colour}" fill-opacity=".75">'
                         f"<title>{escape(label)}: {x:.4g}, {y:.4g}</title></circle>")  # fmt: skip
        if len(series) > 1:
            parts.append(f'<text x="{x1:.1f}" y="{20 + 13 * number}" text-anchor="end" '
                         f'style="fill:{colour}">{escape(one.name)}</text>')  # fmt: skip
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return (f'<figure><svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(parts)}</svg>'
            f"<figcaption>{escape(title)}</figcaption></figure>")  # fmt: skip


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return low - room, high + room


def write_report(
    path: Path, name: str, fitted: Fitted, domains: Sequence[Domain], comparison: Comparison | None
) -> None:
    """Write the page."""
    measured, names = fitted.measured, [domain.name for domain in domains]
    objective = measured.bits @ fitted.objective
    both = [
        Series(check.kind, _points(check.predictions @ fitted.objective, objective, measured.names))
        for check in fitted.checks
    ]
    parts = [
        f"<h1>Mixture weights: {escape(name)}</h1>",
        f"<p>{len(measured.names)} candidates, {len(measured.by_seed[BASE])} seeds each. Every candidate was predicted "
        "by a regression fitted without it (leave-one-out); bits per byte are means over seeds.</p>",
        _laws_table(fitted, names),
        scatter("Objective, leave-one-out", "predicted", "measured", both, diagonal=True),
        f"<h2>Predicted and measured by domain ({fitted.law.kind})</h2>",
        *(scatter(domain, "predicted", "measured", [Series(domain, _points(fitted.used.predictions[:, place],
                  measured.bits[:, place], measured.names))], diagonal=True)
          for place, domain in enumerate(names)),
        "<h2>Trade-off</h2><p>Each candidate twice: what more weight does to the domain itself, and to the mean of all "
        "others.</p>",
        *(_trade_off(fitted, names, place) for place in range(len(names))),
        f"<h2>Proposal</h2><p>For {fitted.budget:,} training tokens.</p>",
        _proposal_table(fitted, domains, comparison),
        _verdict(fitted, comparison),
    ]  # fmt: skip
    page = (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
            f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>")  # fmt: skip
    write_bytes(str(path), page.encode())


def _points(xs: Floats, ys: Floats, labels: Sequence[str]) -> list[tuple[float, float, str]]:
    return list(zip(xs.tolist(), ys.tolist(), labels, strict=True))


def _trade_off(fitted: Fitted, names: Sequence[str], place: int) -> str:
    measured = fitted.measured
    others = [number for number in range(len(names)) if number != place]
    weights = measured.weights[:, place]
    return scatter(names[place], "weight", "bits per byte", [
        Series(names[place], _points(weights, measured.bits[:, place], measured.names)),
        Series("mean of the others", _points(weights, measured.bits[:, others].mean(axis=1), measured.names)),
    ])  # fmt: skip


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>{cells}</table>"


def _laws_table(fitted: Fitted, names: Sequence[str]) -> str:
    rows = [
        [check.kind + (" (used)" if check is fitted.used else ""), _number(check.correlation), f"{check.error:.4f}",
         *map(_number, check.by_domain)]
        for check in fitted.checks
    ]  # fmt: skip
    noise = ["noise between seeds", "", "", *(f"{value:.4f}" for value in fitted.measured.noise)]
    return _table(["leave-one-out", "rank correlation", "mean error", *names], [*rows, noise])


def _proposal_table(fitted: Fitted, domains: Sequence[Domain], comparison: Comparison | None) -> str:
    base = fitted.measured.row(BASE)
    rows = []
    for place, domain in enumerate(domains):
        weight = float(fitted.proposal[place])
        row = [domain.name, f"{fitted.measured.weights[base, place]:.3f}", f"{weight:.3f}",
               f"{weight * fitted.budget / domain.total:.2f}", f"{fitted.measured.bits[base, place]:.3f}",
               f"{fitted.expected[place]:.3f}"]  # fmt: skip
        rows.append([*row, f"{comparison.proposal[place]:.3f}"] if comparison else row)
    head = ["domain", "base weight", "proposed", "epochs", "base, measured", "proposal, predicted"]
    return _table([*head, "proposal, measured"] if comparison else head, rows)


def _verdict(fitted: Fitted, comparison: Comparison | None) -> str:
    if comparison is None:
        return "<p>The proposal has not been trained (<code>fit --confirm</code>).</p>"
    return f"<p>{escape(verdict(fitted, comparison))}</p>"


def verdict(fitted: Fitted, comparison: Comparison) -> str:
    """One sentence: whether the trained proposal is better than the base, and by how much of the noise."""
    base, after = float(np.mean(comparison.base_seeds)), float(np.mean(comparison.proposal_seeds))
    expected = float(fitted.expected @ fitted.objective)
    word = "better" if comparison.gain > 0 else "worse"
    seeds = "for every seed" if comparison.all_seeds_better else "but not for every seed" if comparison.gain > 0 else ""
    return (
        f"Trained, the proposal is {word} than the base{' ' + seeds if seeds else ''}: {after:.4f} bits per byte "
        f"instead of {base:.4f} ({expected:.4f} were predicted)."
    )
