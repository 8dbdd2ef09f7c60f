"""The limits of measures, read from the recipe that a corpus manifest carries."""

from __future__ import annotations

from typing import Any

from roots_pipeline.report.facts import Limit


def read_limits(config: dict[str, Any]) -> tuple[Limit, ...]:
    """All limits of a `corpus` section, in its order."""
    return ()
