"""Last round of SimHash: of all pairs of near hashes, which documents stay.

As in `survivors`, documents are looked at from the best rank down, and one that is near a document that stays is
dropped. Documents with equal hashes share one fate: their best stands for them, and is their cause if it stays. As
published, the best of each cluster (connected component) stays, and documents with equal hashes are only a cluster if
another hash is near theirs.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.core.storage import fingerprint
from roots_pipeline.dedup.greedy import best_kept_twin, best_of_component
from roots_pipeline.dedup.ranks import number_documents, source_ranks
from roots_pipeline.dedup.row_lists import distinct, spread
from roots_pipeline.dedup.survivors import cluster_names, published_pairs, with_verdicts

# A pair, in the list of its worse document: the better one, whether that is long, and the number of different bits.
EDGES = pa.schema([
    pa.field("shard", pa.int32()), pa.field("row", pa.int64()), pa.field("rank", pa.int32()),
    pa.field("id", pa.large_string()), pa.field("long", pa.bool_()), pa.field("distance", pa.int32()),
])
_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("rank", pa.int32()), pa.field("id", pa.large_string()), pa.field("long", pa.bool_()),
    *(pa.field(f"other_{field.name}", field.type) for field in list(EDGES)[:5]), EDGES.field("distance"),
])
_FINDINGS = pa.schema([
    *FINDING_FIELDS, pa.field("id", pa.large_string()), pa.field("other", pa.large_string()), EDGES.field("distance"),
    pa.field("cluster", pa.large_string()),
])
_LAST = 1 << 30  # added to the rank of documents that are not long


@dataclass(frozen=True, slots=True)
class SimHashSettings:
    """What all rounds share; the fields are explained in `simhash.SimHashDuplicates`."""

    window: int
    long_characters: int
    as_published: bool
    prefer: tuple[str, ...]

    def ranks(self, batch: pa.RecordBatch) -> pa.Array:
        """Ranks of sources; long documents, which always stay, come first (not as published)."""
        ranks = source_ranks(batch.column("source"), self.prefer)
        if self.as_published:
            return ranks
        return pc.if_else(batch.column(self.long), ranks, pc.add(ranks, pa.scalar(_LAST, pa.int32())))

    @property
    def column(self) -> str:
        return self._named("hash")

    @property
    def long(self) -> str:
        return self._named("long")

    @property
    def leads(self) -> str:
        return self._named("leads")

    @property
    def edges(self) -> str:
        return self._named("edges")

    def _named(self, what: str) -> str:
        return f"_simhash_{what}_{fingerprint(astuple(self))[:8]}"


@dataclass(frozen=True, slots=True)
class SimHashSurvivors(Exchange):
    """Verdict `verdict` for documents that are near one that stays and are not long."""

    name: ClassVar[str] = "simhash_duplicates: survivors"
    partitions: ClassVar[int | None] = 1
    settings: SimHashSettings
    verdict: str

    @property
    def needs(self) -> tuple[str, ...]:
        own = self.settings
        return ("id", "source", "verdict", "cause", own.long, own.edges)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        pairs, rows = spread(batch.column(self.settings.edges))
        at = pa.array(rows)
        columns = [
            np.zeros(len(rows), np.uint64), np.full(len(rows), shard, np.int32), rows + first_row,
            self.settings.ranks(batch).take(at), batch.column("id").take(at).cast(pa.large_string()),
            batch.column(self.settings.long).take(at), *pairs.columns,
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        names = ["shard", "row", "rank", "id", "long"]
        own = entries.select(names)
        others = entries.select([f"other_{name}" for name in names]).rename_columns(names)
        documents = pa.concat_tables([own, others.cast(own.schema)]).combine_chunks()
        numbers, example = number_documents(documents)
        worse, better = numbers[: len(entries)], numbers[len(entries) :]
        once = distinct(worse, better)
        worse, better, distance = worse[once], better[once], entries.column("distance").to_numpy()[once]
        long = documents.column("long").to_numpy()[example]
        cause = (_clusters if self.settings.as_published else _greedy)(worse, better, distance, long)
        lost = np.flatnonzero(cause >= 0)
        pairs, dropped = entries.take(pa.array(once)), documents.take(pa.array(example[lost]))
        ids = documents.column("id").take(pa.array(example[cause[lost]])).cast(pa.string())
        tables = [
            [pairs["shard"], pairs["row"], pa.nulls(len(once), pa.string()), pairs["id"], pairs["other_id"],
             pairs["distance"], cluster_names(worse, better, documents.column("id").take(pa.array(example)))],
            [dropped["shard"], dropped["row"], ids, dropped["id"],
             *(pa.nulls(len(lost), field.type) for field in list(_FINDINGS)[4:])],
        ]
        return pa.concat_tables([pa.table(columns, schema=_FINDINGS) for columns in tables])

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        return with_verdicts(batch, findings.filter(pc.is_valid(findings.column("cause"))), first_row, self.verdict)

    def published(self, findings: pa.Table) -> pa.Table:
        return published_pairs(findings)


Numbers = npt.NDArray[np.int64]


def _greedy(worse: Numbers, better: Numbers, distance: npt.NDArray[np.int32], long: npt.NDArray[np.bool_]) -> Numbers:
    """Causes, by number (-1: stays); only the best document of a hash has pairs with other hashes."""
    near = (distance > 0) & ~long[worse]
    cause = best_kept_twin(worse[near], better[near], len(long))
    copies = (distance == 0) & ~long[worse]
    fate = cause[better[copies]]
    cause[worse[copies]] = np.where(fate >= 0, fate, better[copies])
    return cause


def _clusters(worse: Numbers, better: Numbers, distance: npt.NDArray[np.int32], long: npt.NDArray[np.bool_]) -> Numbers:
    """Causes as published: the best of each connected component with two different hashes."""
    cause = best_of_component(worse, better, len(long))
    root = np.where(cause >= 0, cause, np.arange(len(long)))
    cluster = np.zeros(len(long), bool)
    cluster[root[worse[distance > 0]]] = True
    cause[~cluster[root] | long] = -1
    return cause
