"""What the steps of a run cost, from the `history.jsonl` that each finished call appends a line to."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from roots_pipeline.core.storage import exists, open_read


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall time: of the last call that finished, and of all of them together (calls that were killed leave no line)."""

    last_seconds: float
    seconds: float
    calls: int


def read_cost(path: str) -> Cost | None:
    """The cost of one step; None if no call has finished. A line cut short by a kill is passed over."""
    if not exists(path):
        return None
    last, total, calls = 0.0, 0.0, 0
    with open_read(path) as history:
        for line in history:
            try:
                last = float(orjson.loads(line)["seconds"])
            except (KeyError, TypeError, ValueError):
                continue
            total, calls = total + last, calls + 1
    return Cost(last, total, calls) if calls else None
