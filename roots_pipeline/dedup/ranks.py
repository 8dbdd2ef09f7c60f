"""Which of several documents is the better one: its source's place in `prefer`, a measure if one is named, then its id.

A rank never depends on the order in which documents arrive, so shards, workers and engines cannot change who survives.
Documents with the same rank and id (ids should be unique) fall back on shard and row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Stage
from roots_pipeline.dedup.row_lists import distinct

LENGTH = "length"  # as a measure: the bytes of the text
LENGTH_COLUMN = "_text_bytes"
RANK_FIELDS = [pa.field("rank", pa.int32()), pa.field("demerit", pa.float64()), pa.field("id", pa.large_string())]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of documents: by `prefer`, then by `measure` (most first; with a `-` before it, least first), then id.

    Documents without a number for the measure come behind those with one.
    """

    prefer: tuple[str, ...]
    measure: str

    @property
    def column(self) -> str:
        """The column that holds the measure; empty if there is none."""
        name = self.measure.removeprefix("-")
        return LENGTH_COLUMN if name == LENGTH else name

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", *([self.column] if self.column else []))

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """RANK_FIELDS of the rows; sorted by them, the best document comes first. Raises RecipeError."""
        demerit = np.zeros(batch.num_rows)
        if self.column:
            if self.column not in batch.schema.names:
                raise RecipeError(f"documents cannot be ranked by '{self.column}': no stage before measures it.",
                                  hint="Put the stage that measures it first, or use `measure: length`.")
            values = pc.fill_null(batch.column(self.column).cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
            demerit = np.where(np.isnan(values), np.inf, values if self.measure.startswith("-") else -values)
        ids = batch.column("id").cast(pa.large_string())
        return [source_ranks(batch.column("source"), self.prefer), pa.array(demerit), ids]


def sources_named(stage: Stage) -> tuple[str, ...]:
    """The sources that a stage of a recipe prefers to others; each should be a source of that recipe."""
    return tuple(getattr(stage, "prefer", ()))


def source_ranks(sources: pa.Array | pa.ChunkedArray, prefer: Sequence[str]) -> pa.Array | pa.ChunkedArray:
    """int32 ranks of sources: the place in `prefer`; sources not named there rank behind, all alike."""
    return pc.fill_null(pc.index_in(sources, pa.array(prefer, pa.string())), len(prefer)).cast(pa.int32())


def number_documents(entries: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of documents, best first, for entries (rank, id, shard, row) that may name a document more than once.

    Returns the document's number for each entry, and an entry of each document.
    """
    shard, row = entries.column("shard").to_numpy(), entries.column("row").to_numpy()
    order = np.lexsort((row, shard))
    new = np.ones(len(order), bool)
    new[1:] = (shard[order][1:] != shard[order][:-1]) | (row[order][1:] != row[order][:-1])
    examples = order[new]
    keys = [(name, "ascending") for name in ("rank", "id", "shard", "row")]
    by_rank = pc.sort_indices(entries.take(pa.array(examples)), sort_keys=keys).to_numpy()
    place = np.empty(len(examples), np.int64)
    place[by_rank] = np.arange(len(examples))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = place[np.cumsum(new) - 1]
    return numbers, examples[by_rank]


def best_few(
    owner: npt.NDArray[np.int64], number: npt.NDArray[np.int64], limit: int, merit: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.int64]:
    """For each owner, where its `limit` best different numbers are: those of most merit, then the smallest."""
    once = distinct(owner, number)
    if merit is not None:
        once = once[np.lexsort((number[once], -merit[once], owner[once]))]
    return once[places_in_groups(owner[once]) < limit]


def places_in_groups(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The place, from 0, of each entry in its run of equal values."""
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    place = np.arange(len(ordered))
    return place - np.maximum.accumulate(np.where(new, place, 0))
