"""What other limits would change, by the stage that a run uses.

A stage `thresholds` of the recipe is chosen and some of its limits are changed. Documents that an earlier stage dropped
keep their verdict. All others are judged by the limits; those within them keep the verdict that a later stage gave.
A document that comes back this way has not been compared with others: a run may still find that it has a twin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.config import CorpusRecipe
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.explorer.table import MeasureTable
from roots_pipeline.rules.columns import DEFAULT, language_code
from roots_pipeline.rules.thresholds import Limits, Thresholds

Mask = npt.NDArray[np.bool_]
BINS = 60


@dataclass(frozen=True, slots=True)
class Choice:
    """A stage `thresholds`: its place in the recipe and the rows of the table that it judges."""

    index: int
    stage: Thresholds
    groups: tuple[str, ...] | None
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdicts of the rows of a choice. `limited`: dropped by these limits; `open`: these limits decide."""

    verdict: pa.Array
    limited: Mask
    open: Mask

    @property
    def passes(self) -> Mask:
        """Rows that are within the limits, whatever a later stage said of them."""
        return self.open & ~self.limited


class Judge:
    """Judges a corpus by changed limits. Raises RecipeError if its recipe has no stage `thresholds`."""

    def __init__(self, table: MeasureTable, recipe: CorpusRecipe) -> None:
        self.table, self.recipe = table, recipe
        self.choices: list[Choice] = []
        for index, entry in enumerate(recipe.stages):
            if isinstance(entry.made, Thresholds):
                groups = tuple(entry.groups) if entry.groups is not None else None
                mine = np.isin(table.group, sorted(set(table.group) if groups is None else groups))
                self.choices.append(Choice(index, entry.made, groups, np.flatnonzero(mine)))
        if not self.choices:
            raise RecipeError("the recipe of this corpus has no stage 'thresholds': there are no limits to move.",
                              where=table.folder, hint="Add one to the recipe and run it again.")
        self._batch = lru_cache(maxsize=len(self.choices))(self._make_batch)

    def changed(self, number: int, changes: Limits) -> Thresholds:
        """The stage of a choice with some limits changed. Raises RecipeError for a measure that there is not."""
        stage = self.choices[number].stage
        limits = {language: dict(entries) for language, entries in stage.limits.items()}
        for language, entries in changes.items():
            for measure, limit in entries.items():
                if measure not in self.table.measures:
                    raise RecipeError(f"there is no measure '{measure}' in this corpus.", where="limits")
                limits.setdefault(language_code(language), {})[measure] = limit
        return replace(stage, preset="", limits=limits)

    def judge(self, number: int, changes: Limits | None = None) -> Judgement:
        """The verdicts of a choice's rows under changed limits; without changes, those of the run."""
        batch, earlier, later = self._batch(number)
        verdict = self.changed(number, changes or {})(batch).column("verdict")
        open_ = earlier.is_null().to_numpy(zero_copy_only=False)
        limited = verdict.is_valid().to_numpy(zero_copy_only=False) & open_
        return Judgement(verdict.fill_null(later), limited, open_)

    def rows_of(self, number: int, language: str | None) -> Mask:
        """Which rows of a choice are in a language (None: all); documents without one are in `default`."""
        column = self.table.table.column("language").take(pa.array(self.choices[number].rows))
        if language is None:
            return np.ones(len(column), bool)
        codes = {code: language_code(code) for code in column.unique().to_pylist() if code is not None}
        same = [code for code, name in codes.items() if name == language]
        mask: Mask = pc.is_in(column, pa.array(same, pa.string())).to_numpy()
        return mask | column.is_null().to_numpy() if language == DEFAULT else mask

    def _make_batch(self, number: int) -> tuple[pa.RecordBatch, pa.Array, pa.Array]:
        """What the stage reads, with the verdicts that came before it; those, and the ones that came behind it."""
        choice = self.choices[number]
        rows = self.table.table.take(pa.array(choice.rows)).combine_chunks()
        columns = {field.name: _one(rows.column(field.name)) for field in rows.schema
                   if field.name in ("language", *self.table.measures)}
        nothing = pa.nulls(len(rows), pa.string())
        bare = pa.RecordBatch.from_pydict({**columns, "verdict": nothing})
        stored = _one(rows.column("verdict"))
        ours = choice.stage(bare).column("verdict")
        outside = ours.is_valid().to_numpy(zero_copy_only=False)
        names = {name for entry in self.recipe.stages[: choice.index] for name in entry.made.verdicts}
        mine = pc.is_in(stored, pa.array(choice.stage.measures, pa.string())).to_numpy(zero_copy_only=False) & outside
        before = pc.is_in(stored, pa.array(sorted(names), pa.string())).to_numpy(zero_copy_only=False) & ~mine
        earlier, later = (pc.if_else(pa.array(chosen), stored, nothing) for chosen in (before, ~before & ~mine))
        return pa.RecordBatch.from_pydict({**columns, "verdict": earlier}), earlier, later


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def histogram(values: npt.NDArray[np.float64], parts: Mapping[str, Mask]) -> dict[str, Any]:
    """Bars of a measure for some disjoint parts of the documents: edges and, for each part, the documents of each bar.

    From the 0.5th to the 99.5th percentile; what lies beyond is in the first and last bar. Logarithmic if the values
    are positive and spread over more than two orders of magnitude.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return {"edges": [], "parts": {}, "logarithmic": False, "lowest": None, "highest": None}
    low, high = (float(value) for value in np.percentile(known, [0.5, 99.5]))
    logarithmic = low > 0 and high / low > 100
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.geomspace(low, high, BINS + 1) if logarithmic else np.linspace(low, high, BINS + 1)
    clipped = np.clip(values, edges[0], edges[-1])
    bars = {name: np.histogram(clipped[mask & np.isfinite(values)], edges)[0].tolist() for name, mask in parts.items()}
    return {"edges": edges.tolist(), "parts": bars, "logarithmic": logarithmic,
            "lowest": float(known.min()), "highest": float(known.max())}
