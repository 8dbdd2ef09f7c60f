"""A text that somebody pastes: every measure that the recipe takes, with its limits, and what each judge says.

Stages in which documents meet others are left out: one text has no twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from roots_pipeline.config import CorpusRecipe
from roots_pipeline.core.documents import make_batch, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.explain import Measure, measures_of
from roots_pipeline.pipeline import is_judge

MAXIMUM_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Pasted:
    """`verdicts`: for each stage that can drop a document by itself, why it would (null: it would not)."""

    language: str | None
    text: str
    measures: list[Measure]
    verdicts: list[tuple[str, str | None]]
    left_out: list[str]


def judge_text(text: str, recipe: CorpusRecipe, *, group: str, language: str | None) -> Pasted:
    """Run the maps of a recipe for a group of sources on one text. Raises RecipeError for one that is too long."""
    if len(text) > MAXIMUM_CHARACTERS:
        raise RecipeError(f"the text has {len(text):,} characters; here at most {MAXIMUM_CHARACTERS:,} are looked at.")
    text = text.encode("utf-8", "replace").decode()  # half a pair of surrogates is no text
    source = next((entry.name for entry in recipe.sources if entry.group == group), "pasted")
    batch = make_batch([{"id": "pasted", "text": text, "source": source, "language": language}])
    verdicts: list[tuple[str, str | None]] = []
    left_out: list[str] = []
    for entry in recipe.stages:
        if entry.groups is not None and group not in entry.groups:
            continue
        if not isinstance(entry.made, Map):
            left_out.append(entry.made.name)
            continue
        batch = entry.made(batch)
        verdict = batch.column("verdict")[0].as_py()
        if verdict is not None or is_judge(entry.made):
            verdicts.append((entry.made.name, verdict))
        if verdict is not None:  # so that the next stages look at it too
            batch = with_columns(batch, {"verdict": pa.nulls(1, pa.string())})
    values: dict[str, Any] = {name: column[0].as_py() for name, column in zip(batch.schema.names, batch.columns,
                                                                             strict=True)}
    stages = [{**entry.made.parameters(), "groups": entry.groups} for entry in recipe.stages]
    measures = [measure for measure in measures_of(stages, group, values) if not measure.name.startswith("_")]
    return Pasted(values["language"], values["text"], measures, verdicts, left_out)
