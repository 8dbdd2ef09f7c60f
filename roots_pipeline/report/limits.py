"""The limits of measures, from the stages that a corpus manifest carries with all their settings.

A stage `thresholds` has `limits`: {language: {measure: [minimum, maximum]}}, where the language `default` holds for all
without an entry of their own, null means no bound, and null instead of the pair takes the limit of a language away.
"""

from __future__ import annotations

from typing import Any

from roots_pipeline.report.facts import Limit

_STAGE = "thresholds"
_DEFAULT = "default"


def read_limits(config: dict[str, Any]) -> tuple[Limit, ...]:
    """All limits of a corpus, those of `default` first. Raises KeyError, TypeError or ValueError for another shape."""
    found = [
        _limit(str(language), str(measure), bounds)
        for stage in config["stages"] if stage["stage"] == _STAGE
        for language, entries in stage["limits"].items()
        for measure, bounds in entries.items()
    ]
    return tuple(sorted((limit for limit in found if limit is not None), key=lambda limit: limit.language is not None))


def _limit(language: str, measure: str, bounds: Any) -> Limit | None:
    minimum, maximum = (None, None) if bounds is None else bounds
    if language != _DEFAULT:
        return Limit(measure, _number(minimum), _number(maximum), language)
    if minimum is None and maximum is None:
        return None
    return Limit(measure, _number(minimum), _number(maximum), None)


def _number(bound: Any) -> float | None:
    return None if bound is None else float(bound)
