"""Third round of MinHash: pairs that signatures leave open are settled by their sets of n-grams.

In: texts, and the pairs that each document is part of (second round). The sets of both documents go to the key of the
better one, once each, however many pairs they have there. Out: pairs of at least the wanted Jaccard similarity, added
to those that the signatures proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.minhash_pairs import comparison_keys, jaccard_to_first
from roots_pipeline.dedup.minhash_signature import SignatureSettings
from roots_pipeline.dedup.ranks import source_ranks
from roots_pipeline.dedup.row_lists import collect, spread
from roots_pipeline.dedup.survivors import EDGES
from roots_pipeline.text.ngrams import ngram_hashes

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("hub_shard", pa.int32()), pa.field("hub_row", pa.int64()), pa.field("part", pa.int32()),
    pa.field("rank", pa.int32()), pa.field("id", pa.large_string()), pa.field("ngrams", pa.large_list(pa.uint64())),
])
_FINDINGS = pa.schema([
    *FINDING_FIELDS, pa.field("other_shard", pa.int32()), pa.field("other_row", pa.int64()),
    pa.field("other_rank", pa.int32()), pa.field("other_id", pa.large_string()), pa.field("jaccard", pa.float64()),
])


@dataclass(frozen=True, slots=True)
class ExactJaccard(Exchange):
    """The Jaccard similarity of pairs left open, from sets of 64-bit n-gram hashes."""

    name: ClassVar[str] = "near_duplicates: comparison"
    signature: SignatureSettings
    threshold: float
    prefer: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", "text", self.signature.checks, self.signature.edges)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.signature.edges,)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        checks, rows = spread(batch.column(self.signature.checks))
        taking, place = np.unique(rows, return_inverse=True)  # rows with a check; which of them each check is of
        sets = ngram_sets(batch.column("text").take(pa.array(taking)), self.signature)
        at = pa.array(rows)
        hub_shard, hub_row, part = (checks.column(name).to_numpy() for name in checks.column_names)
        columns = [
            comparison_keys(hub_shard, hub_row, part), np.full(len(rows), shard, np.int32), rows + first_row,
            hub_shard, hub_row, part, source_ranks(batch.column("source"), self.prefer).take(at),
            batch.column("id").take(at).cast(pa.large_string()), sets.take(pa.array(place)),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        shard, row, hub_shard, hub_row, part = (
            entries.column(name).to_numpy() for name in ("shard", "row", "hub_shard", "hub_row", "part")
        )
        joins = (shard != hub_shard) | (row != hub_row)
        order = np.lexsort((row, shard, joins, part, hub_row, hub_shard))
        hub = np.maximum.accumulate(np.where(joins[order], 0, np.arange(len(order))))
        member = np.flatnonzero(joins[order])
        hub, member = order[hub[member]], order[member]
        sets = entries.column("ngrams").combine_chunks()
        values, offsets = sets.values.to_numpy(), sets.offsets.to_numpy()
        similar = np.empty(len(member))
        jaccard_to_first(values, offsets, member, hub, similar)
        enough = similar >= self.threshold
        hub, member, similar = hub[enough], member[enough], similar[enough]
        columns = [
            shard[member], row[member], pa.nulls(len(member), pa.string()), shard[hub], row[hub],
            *(entries.column(name).take(pa.array(hub)) for name in ("rank", "id")), similar,
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.signature.edges not in batch.schema.names:
            return batch
        before, rows = spread(batch.column(self.signature.edges))
        found = findings.select(_FINDINGS.names[3:]).append_column("exact", pa.array(np.ones(len(findings), bool)))
        edges = pa.concat_tables([before.cast(EDGES), found.rename_columns(EDGES.names).cast(EDGES)])
        rows = np.append(rows, findings.column("row").to_numpy() - first_row)
        return with_columns(batch, {self.signature.edges: collect(edges, rows, batch.num_rows)})


def ngram_sets(texts: pa.Array, signature: SignatureSettings) -> pa.Array:
    """The sorted set of n-gram hashes of each text, as lists of uint64."""
    hashes, bounds = ngram_hashes(*text_buffers(texts), signature.ngrams, signature.short_whole)
    sets = [np.unique(hashes[a:b]) for a, b in pairwise(bounds.tolist())]
    offsets = np.append(0, np.cumsum([len(one) for one in sets], dtype=np.int64))
    return pa.LargeListArray.from_arrays(
        pa.array(offsets, pa.int64()), pa.array(np.concatenate([np.empty(0, np.uint64), *sets]))
    )
