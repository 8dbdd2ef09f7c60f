"""Exact duplicates of another corpus: a text whose hash is in its reference is dropped.

In: hashes of texts, and the table of hashes that `reference` wrote for the other corpus. Out: the verdict
`known_exact_duplicates`, `cause` = the (smallest) id of the document of the other corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange, Map
from roots_pipeline.dedup.reference import rows_with_keys
from roots_pipeline.dedup.survivors import with_verdicts

HASHES = pa.schema([pa.field("key", pa.uint64()), pa.field("low", pa.uint64()), pa.field("id", pa.string())])
# Old documents have no place, new ones no id.
_BOTH = pa.schema([*HASHES, pa.field("shard", pa.int32()), pa.field("row", pa.int64()), pa.field("new", pa.bool_())])


@dataclass(frozen=True, slots=True)
class KnownTexts(Exchange):
    """Drops texts that are in a reference: `tables` are its files, `content` the fingerprint of what is in them.

    `hashing` is the map that makes the hashes; `prepares` says whether this is the first round to need it.
    """

    name: ClassVar[str] = "known_exact_duplicates"
    tables: tuple[str, ...]
    content: str
    hashing: Map
    prepares: bool

    @property
    def needs(self) -> tuple[str, ...]:
        return ("verdict", "cause", *self.hashing.gives[:2])

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    def prepare(self) -> Map | None:
        return self.hashing if self.prepares else None

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        rows = np.flatnonzero(kept(batch))
        high, low = (batch.column(name).take(pa.array(rows)) for name in self.hashing.gives[:2])
        columns = [high, pa.array(np.full(len(rows), shard, np.int32)), pa.array(rows + first_row), low]
        return pa.table(columns, schema=pa.schema([*KEY_FIELDS, pa.field("low", pa.uint64())]))

    def resolve(self, entries: pa.Table) -> pa.Table:
        keys = np.unique(entries.column("key").to_numpy())
        old = pa.concat_tables([HASHES.empty_table(),
                                *(part for path in self.tables for part in rows_with_keys(path, keys))])
        # Sorted together: a document that follows an old one with the same hash is known.
        nothing = [pa.nulls(len(old), pa.int32()), pa.nulls(len(old), pa.int64()), np.zeros(len(old), bool)]
        mine = [entries["key"], entries["low"], pa.nulls(len(entries), pa.string()), entries["shard"], entries["row"],
                np.ones(len(entries), bool)]
        both = pa.concat_tables([pa.table([*old.columns, *nothing], schema=_BOTH), pa.table(mine, schema=_BOTH)])
        order = [(name, "ascending") for name in ("key", "low", "new", "id", "shard", "row")]
        both = both.take(pc.sort_indices(both, sort_keys=order)).combine_chunks()
        key, low, new = (both.column(name).to_numpy() for name in ("key", "low", "new"))
        starts = np.ones(len(key), bool)
        starts[1:] = (key[1:] != key[:-1]) | (low[1:] != low[:-1])
        first = np.maximum.accumulate(np.where(starts, np.arange(len(key)), 0))
        known = np.flatnonzero(new & ~new[first])
        columns = [both.column("shard").take(pa.array(known)), both.column("row").take(pa.array(known)),
                   both.column("id").take(pa.array(first[known]))]
        return pa.table(columns, schema=pa.schema(FINDING_FIELDS))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        return with_verdicts(batch, findings, first_row, self.name)
