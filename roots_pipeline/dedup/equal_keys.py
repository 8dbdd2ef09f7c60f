"""Documents whose 128-bit keys are equal: the best-ranked stays, the others name it as their cause.

What the key is (a text, a text without layout, a URL) is the business of the stage (`exact`, `urls`), which keeps both
halves in working columns; null takes no part. Of each key a batch sends its best document only, and tells the others
itself when it hears what became of that one: a key that half of a corpus has costs an entry for each batch.

Rank never depends on the order in which documents arrive, so shards and workers cannot change who survives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS
from roots_pipeline.dedup.ranks import RANK_FIELDS, Ranking
from roots_pipeline.dedup.survivors import with_verdicts

_ENTRY = pa.schema([*KEY_FIELDS, pa.field("low", pa.uint64()), *RANK_FIELDS])
_ORDER = [(name, "ascending") for name in ("key", "low", "rank", "demerit", "id", "shard", "row")]


@dataclass(frozen=True, slots=True)
class EqualKeys:
    """The columns of both halves of a key, and the order of documents."""

    high: str
    low: str
    ranking: Ranking

    @property
    def needs(self) -> tuple[str, ...]:
        return ("verdict", "cause", self.high, self.low, *self.ranking.needs)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        """An entry for the best document of each key."""
        rows, best = self._best(batch)
        return self._entries(batch, rows[best == rows], shard, first_row)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int, verdict: str) -> pa.RecordBatch:
        """Verdicts for the documents that were found, and for those of the same keys that were not sent."""
        rows, best = self._best(batch)
        causes = dict(zip((findings.column("row").to_numpy() - first_row).tolist(),
                          findings.column("cause").to_pylist(), strict=True))
        ids = batch.column("id")
        for row, better in zip(rows[best != rows].tolist(), best[best != rows].tolist(), strict=True):
            causes[row] = causes.get(better) or ids[better].as_py()
        found = pa.table({"row": pa.array(list(causes), pa.int64()), "cause": pa.array(causes.values(), pa.string())})
        return with_verdicts(batch, found, 0, verdict)

    def _best(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows that take part, and for each the best row of the batch with its key."""
        takes_part = kept(batch) & batch.column(self.high).is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(takes_part)
        high, low = (batch.column(name).take(pa.array(rows)).to_numpy(zero_copy_only=False)
                     for name in (self.high, self.low))
        order = np.lexsort((low, high))
        same = _like_the_one_before(high[order], low[order])
        shared = np.append(same[1:], False) | same if len(same) else same
        best = rows.copy()
        if shared.any():
            places = order[shared]  # of rows whose key another one has
            entries = self._entries(batch, rows[places], 0, 0)
            ranked = pc.sort_indices(entries, sort_keys=_ORDER).to_numpy()
            again = _like_the_one_before(high[places][ranked], low[places][ranked])
            first = np.maximum.accumulate(np.where(again, 0, np.arange(len(ranked))))
            best[places[ranked]] = rows[places[ranked[first]]]
        return rows, best

    def _entries(self, batch: pa.RecordBatch, rows: npt.NDArray[np.int64], shard: int, first_row: int) -> pa.Table:
        at = pa.array(rows)
        columns = [batch.column(self.high).take(at), pa.array(np.full(len(rows), shard, np.int32)),
                   pa.array(rows + first_row), batch.column(self.low).take(at), *self.ranking.columns(batch.take(at))]
        return pa.table(columns, schema=_ENTRY)


def all_but_the_best(entries: pa.Table) -> pa.Table:
    """A finding for each entry whose key a better-ranked one has, too; its cause is the best of them."""
    ordered = entries.take(pc.sort_indices(entries, sort_keys=_ORDER)).combine_chunks()
    same = _like_the_one_before(ordered.column("key").to_numpy(), ordered.column("low").to_numpy())
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(same))))
    lost = np.flatnonzero(same)
    columns = [
        ordered.column("shard").take(pa.array(lost)), ordered.column("row").take(pa.array(lost)),
        ordered.column("id").take(pa.array(first[lost])).cast(pa.string()),
    ]
    return pa.table(columns, schema=pa.schema(FINDING_FIELDS))


def _like_the_one_before(high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    same = np.zeros(len(high), bool)
    same[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    return same
