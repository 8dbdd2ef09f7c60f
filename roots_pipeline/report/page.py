"""Facts become one HTML file, written whole or not at all.

The page loads nothing and runs nothing: its policy (a meta tag) forbids scripts and every request, its style sheet and
charts are part of it. Everything a template prints is escaped, and strings also pass `safe_text`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from roots_pipeline.core.storage import join, write_bytes
from roots_pipeline.report import numbers
from roots_pipeline.report.collect import collect
from roots_pipeline.report.differences import Piece
from roots_pipeline.report.facts import Run, Training
from roots_pipeline.report.histogram_chart import histogram
from roots_pipeline.report.line_chart import Level, Line, line_chart
from roots_pipeline.report.reading import TABLE_ROWS
from roots_pipeline.report.safe_text import marked, plain

_TEMPLATES = Path(__file__).parent / "templates"
_ELEMENTS = {"same": "{}", "own": "<b>{}</b>", "cut": "<del>{}</del>", "left out": '<span class="muted">{}</span>'}
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def write_report(run_folder: str) -> str:
    """Write `report.html` for whatever steps of a run are finished; returns its path.

    Raises StaleDataError (nothing to report, or files that do not fit together), StorageError.
    """
    path = join(run_folder, "report.html")
    write_bytes(path, render(collect(run_folder)).encode())
    return path


def render(run: Run) -> str:
    """The page as text. The same facts give the same text."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_fit_to_print,
    )
    environment.filters.update(
        count=numbers.count, size=numbers.size, short=numbers.short, duration=numbers.duration, marked=marked,
        plain=plain, pieces=_pieces, language_tag=_language_tag, histogram=histogram, width=_width, shell=shlex.quote,
    )
    environment.globals.update(share=numbers.share, explain=_explain(run.folder))
    return environment.get_template("report.html.j2").render(
        run=run, loss_charts=_loss_charts(run.training), small_charts=_small_charts(run.training),
        table_rows=TABLE_ROWS,
    )


def _fit_to_print(value: object) -> object:
    """What every `{{ … }}` passes: hidden characters of plain strings are made visible (jinja escapes afterwards)."""
    return plain(value, 1000) if isinstance(value, str) and not isinstance(value, Markup) else value


def _language_tag(language: str) -> str | None:
    """A value for the attribute `lang`, None for what is no language tag."""
    return language if _LANGUAGE_TAG.fullmatch(language) else None


def _explain(folder: str) -> Callable[[str], str | None]:
    """The command that tells more of a document; None for an id that cannot be copied from a page as it is."""
    def command(id: str) -> str | None:
        typeable = 0 < len(id) <= 200 and id.isprintable() and plain(id) == id
        return f"python -m roots_pipeline explain {shlex.quote(id)} --run {shlex.quote(folder)}" if typeable else None

    return command


def _pieces(pieces: Sequence[Piece]) -> Markup:
    """A text in pieces: what only it has in bold, what was cut crossed out, what is left out as an ellipsis."""
    return Markup("").join(
        Markup(_ELEMENTS[piece.kind]).format(marked(piece.text, 2000, 60, 2000)) for piece in pieces)


def _width(part: float, whole: float) -> str:
    """Percent for a style attribute."""
    return f"{100 * part / whole if whole else 0:.2f}%"


def _loss_charts(training: Training | None) -> list[Markup]:
    """The losses, drawn for wide and for narrow screens; nothing if no loss was logged yet."""
    if training is None:
        return []
    lines = [Line(name, training.curves[key], class_, dots) for key, name, class_, dots in (
        ("loss", "training loss", "train", False), ("validation_loss", "validation loss", "validation", True),
    ) if key in training.curves]
    levels = [Level(name, value, class_) for name, value, class_ in (
        ("unigram entropy", training.unigram_entropy, "entropy"), ("uniform", training.uniform_loss, "uniform"),
    ) if value is not None]
    if not lines:
        return []
    return [
        line_chart("Loss in nats a token", lines, levels, width=width, height=height, class_=class_)
        for width, height, class_ in ((880, 360, "wide"), (360, 280, "narrow"))
    ]


def _small_charts(training: Training | None) -> list[tuple[str, Markup]]:
    """Learning rate, speed and gradient norm, as far as they were logged."""
    if training is None:
        return []
    return [
        (name, line_chart(name, [Line(name, training.curves[key], "train")], from_zero=True))
        for key, name in (("learning_rate", "Learning rate"), ("tokens_per_second", "Tokens a second"),
                          ("gradient_norm", "Gradient norm"),
                          ("share_of_matmul_peak", "Share of the matmul peak")) if key in training.curves
    ]
