"""A score of any installed classifier as a measure: quality, safe search, educational value.

    text, language, url ──▶ classifier_<name> (0 to 1); `thresholds` turns it into verdicts

A classifier is a function of a package on this machine, made known under the entry point group
`rootbloom.classifiers`: it takes a `pyarrow.RecordBatch` of documents and returns one number (or None) for each. So a
recipe can choose code, but never bring code along. In the package's pyproject.toml:

    [project.entry-points."rootbloom.classifiers"]
    safe_search = "my_package.scoring:score"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar

import pyarrow as pa

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.stages import Map

GROUP = "rootbloom.classifiers"
Classifier = Callable[[pa.RecordBatch], Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Classify(Map):
    """Adds what the classifier `classifier` says of each document. `package` is where it comes from, with version."""

    name: ClassVar[str] = "classify"
    classifier: str = ""
    package: str = field(init=False)

    def __post_init__(self) -> None:
        entry = _entry_point(self.classifier)
        owner = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?"
        object.__setattr__(self, "package", f"{owner}: {entry.value}")

    @property
    def measure(self) -> str:
        """The column it writes."""
        return f"classifier_{self.classifier}"

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "text", "source", "language", "url")

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.measure,)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        scores = list(_load(self.classifier)(batch)) if batch.num_rows else []
        if len(scores) != batch.num_rows:
            raise RecipeError(f"it returned {len(scores)} scores for {batch.num_rows} documents.",
                              where=f"classifier '{self.classifier}' ({self.package})",
                              hint="It must return one number or None for each row of the batch.")
        try:
            column = pa.array(scores, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise RecipeError(f"a score is no number ({error}).",
                              where=f"classifier '{self.classifier}' ({self.package})") from error
        return with_columns(batch, {self.measure: column})


@lru_cache(maxsize=8)
def _load(name: str) -> Classifier:
    loaded: Classifier = _entry_point(name).load()
    return loaded


def _entry_point(name: str) -> EntryPoint:
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        advice = nearest(name, sorted(known)) if known else f"No installed package offers any (group '{GROUP}')."
        raise RecipeError(f"there is no classifier '{name}'.", where="stage 'classify'", hint=advice)
    return known[name]
