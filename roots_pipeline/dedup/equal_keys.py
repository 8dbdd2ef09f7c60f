"""Documents whose 128-bit keys are equal: the best-ranked stays, the others name it as their cause.

What the key is (a text, a text without layout, a URL) is the business of the stage (`exact`, `urls`). In: both halves
of each key. Out: findings. Rank never depends on the order in which documents arrive, so shards and workers cannot
change who survives.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS
from roots_pipeline.dedup.ranks import RANK_FIELDS, Ranking

_ENTRY = pa.schema([*KEY_FIELDS, pa.field("low", pa.uint64()), *RANK_FIELDS])
_ORDER = [(name, "ascending") for name in ("key", "low", "rank", "demerit", "id", "shard", "row")]


def key_entries(
    batch: pa.RecordBatch, rows: npt.NDArray[np.int64], high: pa.Array, low: pa.Array, ranking: Ranking, shard: int,
    first_row: int,
) -> pa.Table:
    """Entries of the rows that take part; `high` and `low` are their keys, one for each of `rows`."""
    columns = [
        high, pa.array(np.full(len(rows), shard, np.int32)), pa.array(rows + first_row), low,
        *ranking.columns(batch.take(pa.array(rows))),
    ]
    return pa.table(columns, schema=_ENTRY)


def all_but_the_best(entries: pa.Table) -> pa.Table:
    """A finding for each entry whose key a better-ranked one has, too; its cause is the best of them."""
    ordered = entries.take(pc.sort_indices(entries, sort_keys=_ORDER)).combine_chunks()
    key, low = ordered.column("key").to_numpy(), ordered.column("low").to_numpy()
    same = np.zeros(len(key), bool)  # same key as the entry before
    same[1:] = (key[1:] == key[:-1]) & (low[1:] == low[:-1])
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(key))))
    lost = np.flatnonzero(same)
    columns = [
        ordered.column("shard").take(pa.array(lost)), ordered.column("row").take(pa.array(lost)),
        ordered.column("id").take(pa.array(first[lost])).cast(pa.string()),
    ]
    return pa.table(columns, schema=pa.schema(FINDING_FIELDS))
