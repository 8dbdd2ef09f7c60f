"""What `python -m train evaluate` found out about a model, read back from RUN/model/evaluation.json.

In: that file. Out: for each task its scores, what the corpus is known to hold of its items, and the scores without
these. The report and the model's card show it. Names and reasons in it are as they were found, and hostile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.storage import read_json

METRICS = ("acc", "acc_norm", "perplexity", "bits_per_byte", "byte_perplexity", "word_perplexity")
_FORMAT = 1  # files that name no format have this one
_COMMAND = "python -m train evaluate"


@dataclass(frozen=True, slots=True)
class Score:
    """A number and its standard error; None where it is not defined (no text, one item, no error for this metric)."""

    value: float | None
    error: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "–"
        return f"{self.value:.4g}" + ("" if self.error is None else f" ± {self.error:.2g}")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of a task: over all items, and without those found in the corpus (None: none found, or none left)."""

    metric: str
    score: Score
    without_found: Score | None


@dataclass(frozen=True, slots=True)
class TaskScores:
    """One task. `found` and `searched` count items, None if nobody looked; `remark` says more, or why nobody did."""

    name: str
    items: int
    metrics: tuple[MetricRow, ...]
    found: int | None
    searched: int | None
    remark: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All tasks, scored at a step of training; `checkpoint` is the fingerprint of what was scored, if it was noted."""

    step: int
    checkpoint: str | None
    tasks: tuple[TaskScores, ...]


def read_evaluation(path: str) -> Evaluation | None:
    """The scores of a file; None if there is none. Raises StaleDataError if it is damaged or of a newer version,
    StorageError if it is no JSON."""
    try:
        value = read_json(path)
    except FileNotFoundError:
        return None
    found = value.get("format", _FORMAT) if isinstance(value, dict) else type(value).__name__
    if found != _FORMAT:
        raise StaleDataError(
            f"the scores have format {found!s:.50}, this version reads format {_FORMAT}.", where=path,
            hint=f"Use the version of rootbloom that wrote them, or run `{_COMMAND}` again.",
        )
    try:
        checkpoint = None if value.get("checkpoint") is None else str(value["checkpoint"])
        step = _count(value["step"])
        return Evaluation(step, checkpoint, tuple(_task(name, one) for name, one in value["tasks"].items()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise StaleDataError(
            f"it does not hold scores as this version writes them ({reason}).", where=path,
            hint=f"Delete it and run `{_COMMAND}` again.",
        ) from error


def _task(name: str, value: Mapping[str, Any]) -> TaskScores:
    known = value["contamination"]
    without = known["without_found"] if known["known"] else None
    metrics = tuple(
        MetricRow(metric, _score(value, metric), None if without is None else _score(without, metric))
        for metric in METRICS if metric in value
    )
    if not metrics:
        raise ValueError(f"no score of {name[:50]!r}")
    items = _count(value["items"])
    if not known["known"]:
        return TaskScores(name, items, metrics, None, None, str(known["reason"]))
    found, searched = _count(known["found"]), _count(known["searched"])
    if not found <= searched <= items or searched == 0:
        raise ValueError(f"{found} found of {searched} searched of {items} items")
    return TaskScores(name, items, metrics, found, searched, str(known["sentence"]))


def _score(values: Mapping[str, Any], metric: str) -> Score:
    return Score(_number(values[metric]), _number(values.get(f"{metric}_stderr")))


def _number(value: Any) -> float | None:
    if value is None:
        return None  # JSON has no NaN
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.50} is no number")
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r:.50} is no count")
    return value
