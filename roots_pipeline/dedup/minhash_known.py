"""Near duplicates of another corpus: which of its documents a new document may resemble.

First of three rounds that come before those of `minhash` when there is a reference (`reference`) of an old corpus:

1. `KnownBands`       bands that a new document shares with old ones     key: band
2. `KnownSignatures`  compared with the signatures of the reference      key: place of the old document
3. `KnownJaccard`     pairs that signatures leave open, by n-grams       key: place of the old document

A document of the new corpus that is verified-similar to one of the old is dropped: verdict `known_near_duplicates`,
`cause` = the id of the old document. All old documents are kept ones, so there is no question of who stays. Pairs that
a signature cannot settle are compared by their texts as long as the old corpus is where it was when the reference was
written; of shards that are not, the estimate decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import kept, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange, Map
from roots_pipeline.dedup.minhash_signature import MinHashSignature, SignatureSettings, band_entries
from roots_pipeline.dedup.ranks import places_in_groups
from roots_pipeline.dedup.reference import Reference, rows_with_keys
from roots_pipeline.dedup.row_lists import collect, empty_lists

BANDS = pa.schema([pa.field("key", pa.uint64()), pa.field("document", pa.int64())])
_OLD = [pa.field("old_shard", pa.int32()), pa.field("old_row", pa.int64())]
# Old documents that share bands with a new one.
CANDIDATES = pa.schema(_OLD)
# Those of them that must be compared by text, and the share of equal numbers of their signatures.
OPEN = pa.schema([*_OLD, pa.field("share", pa.float64()), pa.field("old_id", pa.large_string())])


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """Names of the working columns."""

    signature: SignatureSettings

    @property
    def candidates(self) -> str:
        return self.signature.column.replace("signature", "known")

    @property
    def open(self) -> str:
        return self.signature.column.replace("signature", "known_open")


@dataclass(frozen=True, slots=True)
class PrepareKnown(Map):
    """Signatures, and empty columns for all rounds to come."""

    name: ClassVar[str] = "prepare_known_near_duplicates"
    settings: SignatureSettings

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        own = KnownColumns(self.settings)
        return (*MinHashSignature(self.settings).gives, own.candidates, own.open)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        own = KnownColumns(self.settings)
        return with_columns(MinHashSignature(self.settings)(batch), {
            own.candidates: empty_lists(CANDIDATES, batch.num_rows), own.open: empty_lists(OPEN, batch.num_rows),
        })


@dataclass(frozen=True, slots=True)
class KnownBands(Exchange):
    """Up to `comparisons` old documents for each new one: those that share most bands with it.

    Of the old documents that share one band, the first `comparisons` are looked at. `prepares`: whether this is the
    first round to need signatures.
    """

    name: ClassVar[str] = "known_near_duplicates: bands"
    signature: SignatureSettings
    bands: int
    rows: int
    comparisons: int
    reference: Reference
    prepares: bool

    @property
    def needs(self) -> tuple[str, ...]:
        return ("verdict", self.signature.column)

    @property
    def gives(self) -> tuple[str, ...]:
        return (KnownColumns(self.signature).candidates,)

    def prepare(self) -> Map | None:
        return PrepareKnown(self.signature) if self.prepares else None

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        column = batch.column(self.signature.column)
        keys, rows = band_entries(column, kept(batch), self.signature, self.bands, self.rows)
        columns = [keys, np.full(len(keys), shard, np.int32), rows + first_row]
        return pa.table(columns, schema=pa.schema(KEY_FIELDS))

    def resolve(self, entries: pa.Table) -> pa.Table:
        keys = entries.column("key").to_numpy()
        order = np.argsort(keys, kind="stable")
        distinct_keys, starts, members = np.unique(keys[order], return_index=True, return_counts=True)
        taken = np.zeros(len(distinct_keys), np.int64)  # old documents so far of each key
        found: list[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]] = []
        for number, path in enumerate(self.reference.paths("bands")):
            for part in rows_with_keys(path, distinct_keys):
                key = np.searchsorted(distinct_keys, part.column("key").to_numpy())
                few = places_in_groups(key) + taken[key] < self.comparisons
                key, document = key[few], part.column("document").to_numpy()[few]
                np.add.at(taken, key, 1)
                times = members[key]
                at = np.repeat(starts[key] - np.cumsum(times) + times, times) + np.arange(times.sum())
                found.append((order[at], np.full(len(at), number), np.repeat(document, times)))
        new, old_shard, old_row = (
            (np.concatenate(column) for column in zip(*found, strict=True)) if found else [np.empty(0, np.int64)] * 3
        )
        shard, row = entries.column("shard").to_numpy()[new], entries.column("row").to_numpy()[new]
        columns = [shard, row, pa.nulls(len(new), pa.string()), old_shard.astype(np.int32), old_row]
        return pa.table(columns, schema=pa.schema([*FINDING_FIELDS, *CANDIDATES]))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        column = KnownColumns(self.signature).candidates
        if column not in batch.schema.names:
            return batch
        names = ("row", "old_row", "old_shard")
        row, old_row, old_shard = (findings.column(name).to_numpy() for name in names)
        order = np.lexsort((old_row, old_shard, row))
        same = np.zeros(len(order), bool)
        same[1:] = ((row[order][1:] == row[order][:-1]) & (old_row[order][1:] == old_row[order][:-1])
                    & (old_shard[order][1:] == old_shard[order][:-1]))
        pairs = order[~same]
        shared = np.bincount(np.cumsum(~same) - 1, minlength=len(pairs))  # bands of each pair
        best = np.lexsort((old_row[pairs], old_shard[pairs], -shared, row[pairs]))
        few = pairs[best[places_in_groups(row[pairs[best]]) < self.comparisons]]
        chosen = findings.select(CANDIDATES.names).take(pa.array(few))
        return with_columns(batch, {column: collect(chosen, row[few] - first_row, batch.num_rows)})
