"""Second round of MinHash: documents that share a bucket are compared by signature.

In: the buckets of each document (first round). Out, in two working columns: pairs that the signatures prove similar,
and pairs whose n-grams must be compared. The worse document has the pair; if it must be compared, the better one knows,
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.minhash_bands import certain_agreements
from roots_pipeline.dedup.minhash_pairs import compare_buckets
from roots_pipeline.dedup.minhash_signature import CHECKS, SignatureSettings, signatures_of
from roots_pipeline.dedup.ranks import source_ranks
from roots_pipeline.dedup.row_lists import collect, distinct, spread
from roots_pipeline.dedup.survivors import EDGES

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
        shard, row = entries.column("shard").to_numpy(), entries.column("row").to_numpy()
        once = distinct(shard[better], row[better], shard[worse], row[worse])
        better, worse, equal = better[once], worse[once], equal[once]
        part = _cut_into_parts(shard[better], row[better], equal < accept)
        open_ = part != _SETTLED
        # The better document of an open pair takes part in the comparison: it gets a finding that names itself.
        hubs = np.flatnonzero(open_)[distinct(shard[better[open_]], row[better[open_]], part[open_])]
        to, other = np.append(worse, better[hubs]), np.append(better, better[hubs])
        columns = [
            shard[to], row[to], pa.nulls(len(to), pa.string()), shard[other], row[other],
            *(entries.column(name).take(pa.array(other)) for name in ("rank", "id")),
            np.append(equal, equal[hubs]) / self.signature.hashes, np.append(part, part[hubs]).astype(np.int32),
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        own = self.signature
        if own.edges not in batch.schema.names:
            return batch
        names = ("row", "other_shard", "other_row", "part")
        row, shard, other, part = (findings.column(name).to_numpy() for name in names)
        once = distinct(row, shard, other, part)  # a pair may have been found in several buckets
        settled, open_ = once[part[once] == _SETTLED], once[part[once] != _SETTLED]
        edges = findings.take(pa.array(settled)).select(_FINDINGS.names[3:8])
        edges = edges.append_column("exact", pa.array(np.zeros(len(settled), bool))).rename_columns(EDGES.names)
        checks = findings.take(pa.array(open_)).select(["other_shard", "other_row", "part"])
        length = batch.num_rows
        return with_columns(batch, {
            own.edges: collect(edges, row[settled] - first_row, length),
            own.checks: collect(checks.rename_columns(CHECKS.names), row[open_] - first_row, length),
        })


def _cut_into_parts(
    shard: npt.NDArray[np.int32], row: npt.NDArray[np.int64], open_: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int32]:
    """For pairs sorted by their better document: which part of its partners the worse one is in, if it is open."""
    part = np.full(len(shard), _SETTLED, np.int32)
    at = np.flatnonzero(open_)
    new = np.append(True, (shard[at][1:] != shard[at][:-1]) | (row[at][1:] != row[at][:-1]))[: len(at)]
    first = np.maximum.accumulate(np.where(new, np.arange(len(at)), 0))
    part[at] = (np.arange(len(at)) - first) // PART
    return part
