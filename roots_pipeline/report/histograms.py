"""The distribution of every measure over kept and rejected documents, counted in one pass of small batches.

Axes are chosen first, from a few evenly spaced row groups; then every value is counted. Memory is one batch, a sample
of at most some ten thousand rows, and the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.storage import join
from roots_pipeline.report.axes import bin_edges
from roots_pipeline.report.facts import Histogram, Limit
from roots_pipeline.report.reading import batches, parquet_files

PARTS = ("documents", "rejected")  # kept first
_SAMPLED_GROUPS, _SAMPLED_ROWS = 32, 1000

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _Tally:
    """Counts of one measure: row 0 kept, row 1 rejected; first and last column are below and above the edges."""

    edges: Floats
    logarithmic: bool
    counts: npt.NDArray[np.int64]
    absent: list[int]
    smallest: float = np.inf
    largest: float = -np.inf

    def add(self, values: Floats, part: int) -> None:
        """Count one batch."""
        finite = values[np.isfinite(values)]
        self.absent[part] += len(values) - len(finite)
        if not len(finite):
            return
        self.smallest = min(self.smallest, float(finite.min()))
        self.largest = max(self.largest, float(finite.max()))
        place = np.searchsorted(self.edges, finite, side="right")
        place[finite == self.edges[-1]] = len(self.edges) - 1
        self.counts[part] += np.bincount(place, minlength=self.counts.shape[1])

    def histogram(self, measure: str, limits: tuple[Limit, ...]) -> Histogram:
        """The finished counts."""
        (below, *kept, above), (below_too, *rejected, above_too) = self.counts.tolist()
        empty = not self.counts.any()
        return Histogram(
            measure, tuple(self.edges.tolist()), self.logarithmic, tuple(kept), tuple(rejected), (below, below_too),
            (above, above_too), (self.absent[0], self.absent[1]), None if empty else self.smallest,
            None if empty else self.largest, limits,
        )


def count_measures(folder: str, limits: Sequence[Limit]) -> tuple[Histogram, ...]:
    """A histogram for each numeric column of a corpus that is no document column, in order of the schema."""
    names = _measure_names(folder)
    sample = _sample(folder, names)
    tallies = {}
    for name in names:
        bounds = [bound for limit in limits if limit.measure == name and limit.language is None
                  for bound in (limit.minimum, limit.maximum) if bound is not None]
        edges, logarithmic = bin_edges(sample[name], bounds)
        if not len(edges):  # nothing in the sample: one bin takes whatever there is
            edges, logarithmic = np.array([0.0, 1.0]), False
        tallies[name] = _Tally(edges, logarithmic, np.zeros((2, len(edges) + 1), np.int64), [0, 0])
    for part, sub in enumerate(PARTS):
        for file in parquet_files(join(folder, sub)):
            present = [name for name in names if name in file.schema_arrow.names]
            for batch in batches(file, present):
                for name in present:
                    tallies[name].add(_floats(batch.column(name)), part)
    return tuple(
        tally.histogram(name, tuple(limit for limit in limits if limit.measure == name))
        for name, tally in tallies.items()
    )


def _measure_names(folder: str) -> list[str]:
    names: dict[str, None] = {}
    for sub in PARTS:
        for file in parquet_files(join(folder, sub)):
            for field in file.schema_arrow:
                numeric = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
                if numeric and field.name not in DOCUMENT_SCHEMA.names and not field.name.startswith("_"):
                    names[field.name] = None
    return list(names)


def _sample(folder: str, names: Sequence[str]) -> dict[str, Floats]:
    """Finite values of each measure from evenly spaced row groups of both parts."""
    found: dict[str, list[Floats]] = {name: [] for name in names}
    for sub in PARTS:
        for batch in _spaced_batches(join(folder, sub), names):
            for name in batch.schema.names:
                values = _floats(batch.column(name))
                found[name].append(values[np.isfinite(values)])
    return {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in found.items()}


def _spaced_batches(folder: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    groups = sum(file.num_row_groups for file in parquet_files(folder))
    every, seen = max(1, groups // _SAMPLED_GROUPS), 0
    for file in parquet_files(folder):
        present = [name for name in names if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            if seen % every == 0:
                yield from _first_batch(file, group, present)
            seen += 1


def _first_batch(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    stream = file.iter_batches(_SAMPLED_ROWS, row_groups=[group], columns=list(names), use_threads=False)
    if (batch := next(stream, None)) is not None:
        yield batch


def _floats(column: pa.Array) -> Floats:
    """A numeric column as float64; nulls become NaN."""
    values: Floats = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
