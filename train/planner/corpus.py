"""The corpus planner's forecast, for the same cost sheet: what `python -m roots_pipeline plan --json` printed.

It comes as a file because training knows nothing of sources and stages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, NonNegativeFloat, NonNegativeInt, PositiveInt, ValidationError

from roots_pipeline.core.errors import RecipeError


class _Prediction(BaseModel):
    cpu_seconds: NonNegativeFloat
    wall_seconds: NonNegativeFloat
    stage_bytes: NonNegativeInt
    output_bytes: NonNegativeInt
    kept_share: NonNegativeFloat


class CorpusPlan(BaseModel):
    """What the sheet takes of the plan: seconds, bytes, and the share of documents that is kept at most."""

    workers: PositiveInt
    prediction: _Prediction


def read_corpus_plan(file: Path) -> CorpusPlan:
    """The plan in a file; raises RecipeError if it is none."""
    made = "Write it with `python -m roots_pipeline plan --recipe R --run RUN --json`."
    try:
        return CorpusPlan.model_validate(orjson.loads(file.read_bytes()))
    except (OSError, orjson.JSONDecodeError) as error:
        raise RecipeError(f"it cannot be read as JSON ({error}).", where=str(file), hint=made) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise RecipeError(f"{place}: {first['msg']}.", where=str(file), hint=made) from error


def corpus_facts(plan: CorpusPlan) -> dict[str, Any]:
    """The plan for programs."""
    return plan.model_dump()


def corpus_text(plan: CorpusPlan) -> str:
    """The plan in the sheet's form."""
    found = plan.prediction
    return "\n".join([
        "Before it, the corpus:",
        f"  time               {found.wall_seconds / 3600:,.2f} hours with {plan.workers} workers",
        f"  CPU-hours          {found.cpu_seconds / 3600:,.2f}",
        f"  disk               {found.stage_bytes / 1e9:,.3f} GB of intermediate files, "
        f"{found.output_bytes / 1e9:,.3f} GB of corpus; {found.kept_share:.1%} of the documents kept at most",
    ])  # fmt: skip
