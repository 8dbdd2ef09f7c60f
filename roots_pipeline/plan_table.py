"""A plan for people: what goes in, what would run, what it would cost."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from roots_pipeline.core.output import table
from roots_pipeline.plan import RunPlan

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def plan_parts(plan: RunPlan) -> list[str | Table]:
    """Two tables and three sentences."""
    inputs = table("input", ("source", "kind"), ("files", "bytes", "shards", "documents, about", "kept, at most"))
    for source in plan.sources:
        kept = "?" if source.kept_share is None else f"{source.kept_share:.1%}"
        documents = "?" if source.documents is None else f"{source.documents:,}"
        inputs.add_row(Text(source.name), source.kind, f"{source.files:,}", f"{source.bytes:,}", f"{source.shards:,}",
                       documents, kept)
    steps = table("steps", ("step",), ("tasks", "done already"))
    for step in plan.steps:
        steps.add_row(step.title, f"{step.tasks:,}", f"{step.reused:,}")
    tasks, reused = sum(step.tasks for step in plan.steps), sum(step.reused for step in plan.steps)
    found = plan.prediction
    return [
        inputs,
        steps,
        f"{tasks - reused:,} of {tasks:,} tasks would run.",
        f"A run from the beginning takes about {_time(found.cpu_seconds)} of CPU time, "
        f"{_time(found.wall_seconds)} with {plan.workers} workers, "
        f"{_size(found.stage_bytes)} for intermediate files and {_size(found.output_bytes)} for the corpus.",
        f"Predicted from {_size(found.sample_bytes)} of the input, of which {found.kept_share:.1%} of the documents "
        "were kept.",
    ]


def _size(size: float) -> str:
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
