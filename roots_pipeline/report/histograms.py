"""The distribution of every measure over kept and rejected documents, counted in one pass of small batches.

Axes are chosen first, from a few evenly spaced row groups; then every value is counted. Memory is one batch, a sample
of at most some ten thousand rows, and the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.storage import join
from roots_pipeline.report.axes import Axis, choose_axis
from roots_pipeline.report.facts import Histogram, Limit, Split
from roots_pipeline.report.reading import batches, parquet_files

PARTS = ("documents", "rejected")  # kept first
_SAMPLED_ROWS, _SAMPLED_GROUPS, _ROWS_OF_A_GROUP = 32_000, 2000, 1000

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _Tally:
    """Counts of one measure: a row each for `Split`'s fields; first and last column are below and above the edges."""

    axis: Axis
    counts: npt.NDArray[np.int64]
    absent: int = 0
    smallest: float = np.inf
    largest: float = -np.inf

    def add(self, values: Floats, row: int) -> None:
        """Count some values of documents that all met the same fate."""
        finite = values[np.isfinite(values)]
        self.absent += len(values) - len(finite)
        if not len(finite):
            return
        self.smallest = min(self.smallest, float(finite.min()))
        self.largest = max(self.largest, float(finite.max()))
        place = np.searchsorted(self.axis.edges, finite, side="right")
        place[finite == self.axis.edges[-1]] = len(self.axis.edges) - 1
        self.counts[row] += np.bincount(place, minlength=self.counts.shape[1])

    def histogram(self, measure: str, limits: tuple[Limit, ...]) -> Histogram:
        """The finished counts."""
        below, *bins, above = (Split(*column) for column in self.counts.T.tolist())
        empty = not self.counts.any()
        return Histogram(
            measure, tuple(self.axis.edges.tolist()), self.axis.logarithmic, self.axis.whole, tuple(bins), below, above,
            self.absent, None if empty else self.smallest, None if empty else self.largest, limits,
        )


def count_measures(folder: str, limits: Sequence[Limit]) -> tuple[Histogram, ...]:
    """A histogram for each numeric column of a corpus that is no document column, in order of the schema."""
    names = measure_names(folder)
    tallies = {name: _tally(values, name, limits) for name, values in _sample(folder, names).items()}
    for sub in PARTS:
        for file in parquet_files(join(folder, sub)):
            present = [name for name in names if name in file.schema_arrow.names]
            for batch in batches(file, present if sub == PARTS[0] else [*present, "verdict"]):
                for name in present:
                    values = floats(batch.column(name))
                    if sub == PARTS[0]:
                        tallies[name].add(values, 0)
                        continue
                    here = _equals(batch.column("verdict"), name)
                    tallies[name].add(values[here], 1)
                    tallies[name].add(values[~here], 2)
    return tuple(
        tally.histogram(name, tuple(limit for limit in limits if limit.measure == name))
        for name, tally in tallies.items()
    )


def _tally(sample: Floats, measure: str, limits: Sequence[Limit]) -> _Tally:
    bounds = [bound for limit in limits if limit.measure == measure and limit.language is None
              for bound in (limit.minimum, limit.maximum) if bound is not None]
    axis = choose_axis(sample, bounds)
    if not len(axis.edges):  # nothing in the sample: one bin, and what there is lies in it or beside it
        axis = Axis(np.array([0.0, 1.0]))
    return _Tally(axis, np.zeros((3, len(axis.edges) + 1), np.int64))


def _equals(column: pa.Array, name: str) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = pc.equal(column, name).fill_null(False).to_numpy(zero_copy_only=False)
    return same


def measure_names(folder: str) -> list[str]:
    """Names of the columns that hold measures, in order of the schema."""
    names: dict[str, None] = {}
    for sub in PARTS:
        for file in parquet_files(join(folder, sub)):
            for field in file.schema_arrow:
                if is_measure(field):
                    names[field.name] = None
    return list(names)


def is_measure(field: pa.Field) -> bool:
    """Whether a column holds a measure: numbers, not one of the document's own columns, not a working column."""
    numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
    return numeric and field.name not in DOCUMENT_SCHEMA.names and not field.name.startswith("_")


def _sample(folder: str, names: Sequence[str]) -> dict[str, Floats]:
    """Finite values of each measure from evenly spaced row groups of both parts."""
    found: dict[str, list[Floats]] = {name: [] for name in names}
    for sub in PARTS:
        for batch in _spaced_batches(join(folder, sub), names):
            for name in batch.schema.names:
                values = floats(batch.column(name))
                found[name].append(values[np.isfinite(values)])
    return {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in found.items()}


def _spaced_batches(folder: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    groups = rows = seen = 0
    for file in parquet_files(folder):
        groups, rows = groups + file.num_row_groups, rows + file.metadata.num_rows
    usable = min(rows / groups, _ROWS_OF_A_GROUP) if rows else 1  # rows that a group yields
    every = max(1, groups // min(_SAMPLED_GROUPS, math.ceil(_SAMPLED_ROWS / usable)))
    for file in parquet_files(folder):
        present = [name for name in names if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            if seen % every == 0:
                yield from _first_batch(file, group, present)
            seen += 1


def _first_batch(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    stream = file.iter_batches(_ROWS_OF_A_GROUP, row_groups=[group], columns=list(names), use_threads=False)
    if (batch := next(stream, None)) is not None:
        yield batch


def floats(column: pa.Array) -> Floats:
    """A numeric column as float64; nulls become NaN."""
    values: Floats = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
