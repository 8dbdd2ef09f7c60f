"""Second round of MinHash: documents that share a bucket are compared by signature.

In: the buckets of each document (first round). Out, in two working columns: pairs that the signatures prove similar,
and pairs whose n-grams must be compared. The worse document has the pair; if it must be compared, the better one knows,
too. Of many pairs a document keeps a few: the settled ones with the best-ranked others, which are the most likely to
stay, and the open ones with the most similar others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.minhash_bands import certain_agreements
from roots_pipeline.dedup.minhash_pairs import compare_buckets
from roots_pipeline.dedup.minhash_signature import CHECKS, SignatureSettings, signatures_of
from roots_pipeline.dedup.ranks import best_few, number_documents, places_in_groups, source_ranks
from roots_pipeline.dedup.row_lists import collect, distinct, spread
from roots_pipeline.dedup.survivors import EDGES

Numbers = npt.NDArray[np.int64]

PART = 4096  # so many partners of one document meet in one place; of more, other workers take the next part
_SETTLED = -1  # in the place of the part: no comparison is needed
_FINDINGS = pa.schema([
    *FINDING_FIELDS, pa.field("other_shard", pa.int32()), pa.field("other_row", pa.int64()),
    pa.field("other_rank", pa.int32()), pa.field("other_id", pa.large_string()), pa.field("jaccard", pa.float64()),
    pa.field("part", pa.int32()),
])


@dataclass(frozen=True, slots=True)
class NearPairs(Exchange):
    """Candidate pairs by bucket, settled by signature where that can be done (fields: see `MinHashDuplicates`)."""

    name: ClassVar[str] = "near_duplicates: candidates"
    signature: SignatureSettings
    threshold: float
    doubt: float
    small_bucket: int
    representatives: int
    comparisons: int
    prefer: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", self.signature.column, self.signature.buckets)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.signature.edges, self.signature.checks)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        buckets, rows = spread(batch.column(self.signature.buckets))
        at = pa.array(rows)
        columns = {
            "key": buckets.column("bucket"), "shard": np.full(len(rows), shard, np.int32), "row": rows + first_row,
            "rank": source_ranks(batch.column("source"), self.prefer).take(at),
            "id": batch.column("id").take(at).cast(pa.large_string()),
            "signature": batch.column(self.signature.column).take(at),
        }
        kind = batch.schema.field(self.signature.column).type
        schema = pa.schema([*KEY_FIELDS, ("rank", pa.int32()), ("id", pa.large_string()), ("signature", kind)])
        return pa.table(list(columns.values()), schema=schema)

    def resolve(self, entries: pa.Table) -> pa.Table:
        by_rank = [(name, "ascending") for name in ("key", "rank", "id", "shard", "row")]
        entries = entries.take(pc.sort_indices(entries, sort_keys=by_rank)).combine_chunks()
        key = entries.column("key").to_numpy()
        bounds = np.append(np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)]), len(key))
        signatures = signatures_of(entries.column("signature"), self.signature.hashes)
        accept, reject = certain_agreements(self.threshold, self.signature.hashes, self.doubt)
        better, worse, equal = compare_buckets(
            bounds, signatures, self.small_bucket, self.representatives, accept, reject
        )
        number, _ = number_documents(entries)
        settled, open_ = self._few(number[worse], number[better], equal, equal >= accept)
        open_ = open_[np.lexsort((number[worse[open_]], number[better[open_]]))]
        place = places_in_groups(number[better[open_]])
        # The better document of an open pair takes part in the comparison: it gets a finding that names itself.
        hubs = np.flatnonzero(place % PART == 0)
        to = np.concatenate([worse[settled], worse[open_], better[open_[hubs]]])
        other = np.concatenate([better[settled], better[open_], better[open_[hubs]]])
        part = np.concatenate([np.full(len(settled), _SETTLED), place // PART, place[hubs] // PART])
        share = np.concatenate([equal[settled], equal[open_], equal[open_[hubs]]]) / self.signature.hashes
        columns = [
            *(entries.column(name).take(pa.array(to)) for name in ("shard", "row")), pa.nulls(len(to), pa.string()),
            *(entries.column(name).take(pa.array(other)) for name in ("shard", "row", "rank", "id")),
            share, part.astype(np.int32),
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        own = self.signature
        if own.edges not in batch.schema.names:
            return batch
        row, part = findings.column("row").to_numpy(), findings.column("part").to_numpy()
        names = ["shard", "row", "rank", "id"]
        others = findings.select([f"other_{name}" for name in names]).rename_columns(names)
        number, _ = number_documents(others)
        own_place = (findings.column("shard").to_numpy() == others.column("shard").to_numpy()) & (
            row == others.column("row").to_numpy()
        )
        share = findings.column("jaccard").to_numpy()
        pairs, hubs = np.flatnonzero(~own_place), np.flatnonzero(own_place)
        few = self._few(row[pairs], number[pairs], share[pairs], part[pairs] == _SETTLED)
        settled, open_ = pairs[few[0]], np.append(pairs[few[1]], hubs[distinct(row[hubs], part[hubs])])
        edges = findings.take(pa.array(settled)).select(_FINDINGS.names[3:8])
        edges = edges.append_column("exact", pa.array(np.zeros(len(settled), bool))).rename_columns(EDGES.names)
        checks = findings.take(pa.array(open_)).select(["other_shard", "other_row", "part"])
        length = batch.num_rows
        return with_columns(batch, {
            own.edges: collect(edges, row[settled] - first_row, length),
            own.checks: collect(checks.rename_columns(CHECKS.names), row[open_] - first_row, length),
        })

    def _few(
        self, worse: Numbers, better: Numbers, share: npt.NDArray[Any], settled: npt.NDArray[np.bool_]
    ) -> tuple[Numbers, Numbers]:
        """Which pairs a document keeps, once each: settled with the best others, open with the most similar ones."""
        done, open_ = np.flatnonzero(settled), np.flatnonzero(~settled)
        return (
            done[best_few(worse[done], better[done], self.comparisons)],
            open_[best_few(worse[open_], better[open_], self.comparisons, share[open_])],
        )
