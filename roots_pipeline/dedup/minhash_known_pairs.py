"""Second and third round against an old corpus (see `minhash_known`): candidates are verified, similar ones dropped.

Entries go to the place of the old document in its corpus, so that each partition reads a range of the reference once.
The verified pairs are published with `id`, `other` (the old document), their similarity, and whether it was computed
from the texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.minhash_bands import certain_agreements
from roots_pipeline.dedup.minhash_exact import ngram_sets
from roots_pipeline.dedup.minhash_known import CANDIDATES, OPEN, KnownColumns
from roots_pipeline.dedup.minhash_pairs import jaccard_to_first
from roots_pipeline.dedup.minhash_signature import SignatureSettings, signatures_of
from roots_pipeline.dedup.reference import Reference, rows_at
from roots_pipeline.dedup.row_lists import collect, spread
from roots_pipeline.dedup.survivors import with_verdicts

VERDICT = "known_near_duplicates"
_FINDINGS = pa.schema([
    *FINDING_FIELDS, *OPEN, pa.field("id", pa.large_string()), pa.field("similar", pa.bool_()),
    pa.field("exact", pa.bool_()),
])
Numbers = npt.NDArray[np.int64]


def _place_keys(reference: Reference, old_shard: npt.NDArray[np.int32], old_row: Numbers) -> npt.NDArray[np.uint64]:
    """Keys in the order of the old documents, spread over all of the key space."""
    firsts = np.cumsum([0, *(shard.documents for shard in reference.shards)])
    step = np.uint64(2**64 - 1) // np.uint64(max(int(firsts[-1]), 1))
    keys: npt.NDArray[np.uint64] = (firsts[old_shard] + old_row).astype(np.uint64) * step
    return keys


def _old_rows(paths: list[str], old_shard: npt.NDArray[np.int32], old_row: Numbers, columns: list[str]) -> Any:
    """(shard, the entries of that shard, their rows in the file, read once each, which of them each entry has)."""
    for number in np.unique(old_shard).tolist():
        mine = np.flatnonzero(old_shard == number)
        rows, which = np.unique(old_row[mine], return_inverse=True)
        yield number, mine, rows_at(paths[number], rows, columns), which


def _drop(batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
    """The batch with the verdict for each row that has a verified pair; the most similar old document is the cause."""
    similar = findings.filter(findings.column("similar"))
    order = [("row", "ascending"), ("share", "descending"), ("old_id", "ascending")]
    similar = similar.take(pc.sort_indices(similar, sort_keys=order)).combine_chunks()
    row = similar.column("row").to_numpy()
    best = np.flatnonzero(np.append(True, row[1:] != row[:-1])[: len(row)])
    chosen = similar.take(pa.array(best))
    causes = chosen.column("old_id").cast(pa.string())
    chosen = chosen.set_column(chosen.schema.names.index("cause"), "cause", causes)
    return with_verdicts(batch, chosen, first_row, VERDICT)


def _published(findings: pa.Table) -> pa.Table:
    pairs = findings.filter(findings.column("similar"))
    names = {"id": "id", "old_id": "other", "share": "jaccard", "exact": "exact"}
    table = pairs.select(list(names)).rename_columns(list(names.values()))
    return table.append_column("cluster", table.column("other"))


@dataclass(frozen=True, slots=True)
class KnownSignatures(Exchange):
    """Candidates compared by signature: settled, or left to `KnownJaccard`."""

    name: ClassVar[str] = "known_near_duplicates: candidates"
    signature: SignatureSettings
    threshold: float
    doubt: float
    reference: Reference

    @property
    def needs(self) -> tuple[str, ...]:
        own = KnownColumns(self.signature)
        return ("id", "verdict", "cause", self.signature.column, own.candidates, own.open)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause", KnownColumns(self.signature).open)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        pairs, rows = spread(batch.column(KnownColumns(self.signature).candidates))
        old_shard, old_row = pairs.column("old_shard").to_numpy(), pairs.column("old_row").to_numpy()
        at = pa.array(rows)
        columns = [
            _place_keys(self.reference, old_shard, old_row), np.full(len(rows), shard, np.int32), rows + first_row,
            old_shard, old_row, batch.column("id").take(at).cast(pa.large_string()),
            batch.column(self.signature.column).take(at),
        ]
        kind = batch.schema.field(self.signature.column).type
        schema = pa.schema([*KEY_FIELDS, *CANDIDATES, ("id", pa.large_string()), ("signature", kind)])
        return pa.table(columns, schema=schema)

    def resolve(self, entries: pa.Table) -> pa.Table:
        old_shard, old_row = (entries.column(name).to_numpy() for name in CANDIDATES.names)
        equal, accept_reject = np.zeros(len(entries), np.int64), certain_agreements(
            self.threshold, self.signature.hashes, self.doubt)
        ids: list[pa.Array] = []
        places: list[Numbers] = []
        paths = self.reference.paths("signatures")
        for _, mine, old, which in _old_rows(paths, old_shard, old_row, ["id", "signature"]):
            theirs = signatures_of(old.column("signature"), self.signature.hashes)
            ours = signatures_of(entries.column("signature").take(pa.array(mine)), self.signature.hashes)
            equal[mine] = (ours == theirs[which]).sum(1)
            ids.append(old.column("id").take(pa.array(which)).combine_chunks().cast(pa.large_string()))
            places.append(mine)
        accept, reject = accept_reject
        back = np.argsort(np.concatenate([np.empty(0, np.int64), *places]))
        old_id = pa.concat_arrays([pa.array([], pa.large_string()), *ids]).take(pa.array(back))
        table = pa.table([
            entries["shard"], entries["row"], pa.nulls(len(entries), pa.string()), old_shard, old_row,
            equal / self.signature.hashes, old_id, entries["id"], equal >= accept, np.zeros(len(entries), bool),
        ], schema=_FINDINGS)
        return table.filter(pa.array(equal > reject))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        column = KnownColumns(self.signature).open
        if column not in batch.schema.names:
            return batch
        batch = _drop(batch, findings, first_row)
        row = findings.column("row").to_numpy() - first_row
        left = np.flatnonzero(~findings.column("similar").to_numpy(zero_copy_only=False) & kept(batch)[row])
        pairs = findings.select(OPEN.names).take(pa.array(left))
        return with_columns(batch, {column: collect(pairs, row[left], batch.num_rows)})

    def published(self, findings: pa.Table) -> pa.Table:
        return _published(findings)


@dataclass(frozen=True, slots=True)
class KnownJaccard(Exchange):
    """Open pairs compared by their sets of n-grams; of shards in `missing` (no text) by the estimate."""

    name: ClassVar[str] = "known_near_duplicates: comparison"
    signature: SignatureSettings
    threshold: float
    reference: Reference
    missing: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "text", "verdict", "cause", KnownColumns(self.signature).open)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        pairs, rows = spread(batch.column(KnownColumns(self.signature).open))
        taking, place = np.unique(rows, return_inverse=True)
        sets = ngram_sets(batch.column("text").take(pa.array(taking)), self.signature)
        columns = [
            _place_keys(self.reference, pairs.column("old_shard").to_numpy(), pairs.column("old_row").to_numpy()),
            np.full(len(rows), shard, np.int32), rows + first_row, *(pairs.column(name) for name in OPEN.names),
            batch.column("id").take(pa.array(rows)).cast(pa.large_string()), sets.take(pa.array(place)),
        ]
        schema = pa.schema([*KEY_FIELDS, *OPEN, ("id", pa.large_string()), ("ngrams", pa.large_list(pa.uint64()))])
        return pa.table(columns, schema=schema)

    def resolve(self, entries: pa.Table) -> pa.Table:
        old_shard, old_row = (entries.column(name).to_numpy() for name in CANDIDATES.names)
        similarity = entries.column("share").to_numpy().copy()
        exact = np.zeros(len(entries), bool)
        there = np.array([shard.name not in self.missing for shard in self.reference.shards], bool)
        chosen = np.flatnonzero(there[old_shard]) if len(there) else np.empty(0, np.int64)
        paths = [shard.text for shard in self.reference.shards]
        for _, mine, old, which in _old_rows(paths, old_shard[chosen], old_row[chosen], ["text"]):
            at = chosen[mine]
            sets = pa.concat_arrays([
                entries.column("ngrams").take(pa.array(at)).combine_chunks(),
                ngram_sets(old.column("text").combine_chunks(), self.signature),
            ])
            result = np.empty(len(at))
            jaccard_to_first(
                sets.values.to_numpy(), sets.offsets.to_numpy(), np.arange(len(at)), which + len(at), result)
            similarity[at], exact[at] = result, True
        return pa.table([
            entries["shard"], entries["row"], pa.nulls(len(entries), pa.string()), old_shard, old_row, similarity,
            entries["old_id"], entries["id"], similarity >= self.threshold, exact,
        ], schema=_FINDINGS).filter(pa.array(similarity >= self.threshold))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        return _drop(batch, findings, first_row)

    def published(self, findings: pa.Table) -> pa.Table:
        return _published(findings)

