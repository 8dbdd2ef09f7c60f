"""Last round of near-duplicate detection: of all verified pairs, who stays.

Documents are looked at from the best rank down. One that is similar to a document that stays is dropped and names the
best of them as its cause; any other stays. So no chain of similarities ever drops a document that resembles nothing
that is left, and of every group of similar documents at least one stays. This needs all pairs in one place: identities
and similarities of documents that have a pair, never texts.

In: a working column of pairs, on the worse document of each. Out: verdicts. The findings hold all pairs (`other` is not
null) and all documents that are dropped (`cause` is not null); the pairs are published with their cluster (connected
component), which is called by the id of its best document.
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
from roots_pipeline.dedup.greedy import best_kept_twin, best_of_component
from roots_pipeline.dedup.ranks import number_documents, source_ranks
from roots_pipeline.dedup.row_lists import distinct, spread

# A verified pair, in the list of its worse document: the better one, their similarity, and whether it was computed from
# the texts (else it is an estimate that settles the pair).
EDGES = pa.schema([
    pa.field("shard", pa.int32()), pa.field("row", pa.int64()), pa.field("rank", pa.int32()),
    pa.field("id", pa.large_string()), pa.field("jaccard", pa.float64()), pa.field("exact", pa.bool_()),
])
_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("rank", pa.int32()), pa.field("id", pa.large_string()),
    *(pa.field(f"other_{field.name}", field.type) for field in list(EDGES)[:4]), *list(EDGES)[4:],
])
_FINDINGS = pa.schema([
    *FINDING_FIELDS, pa.field("id", pa.large_string()), pa.field("other", pa.large_string()), *list(EDGES)[4:],
    pa.field("cluster", pa.large_string()),
])


@dataclass(frozen=True, slots=True)
class Survivors(Exchange):
    """Verdict `verdict` for documents that are similar to one that stays; `edges` is the column of pairs."""

    name: ClassVar[str] = "survivors"
    partitions: ClassVar[int | None] = 1
    verdict: str
    edges: str
    prefer: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", "verdict", "cause", self.edges)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        pairs, rows = spread(batch.column(self.edges))
        at = pa.array(rows)
        columns = [
            np.zeros(len(rows), np.uint64), np.full(len(rows), shard, np.int32), rows + first_row,
            source_ranks(batch.column("source"), self.prefer).take(at),
            batch.column("id").take(at).cast(pa.large_string()), *pairs.columns,
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        names = ["rank", "id", "shard", "row"]
        others = entries.select([f"other_{name}" for name in names]).rename_columns(names)
        own = entries.select(names)
        documents = pa.concat_tables([own, others.cast(own.schema)]).combine_chunks()
        numbers, example = number_documents(documents)
        worse, better = numbers[: len(entries)], numbers[len(entries) :]
        once = distinct(worse, better)  # a pair may have been found more than once
        cause = best_kept_twin(worse[once], better[once], len(example))
        lost = np.flatnonzero(cause >= 0)
        pairs, dropped = entries.take(pa.array(once)), documents.take(pa.array(example[lost]))
        ids = documents.column("id").take(pa.array(example[cause[lost]])).cast(pa.string())
        clusters = cluster_names(worse[once], better[once], documents.column("id").take(pa.array(example)))
        tables = [
            [pairs["shard"], pairs["row"], pa.nulls(len(once), pa.string()), pairs["id"], pairs["other_id"],
             pairs["jaccard"], pairs["exact"], clusters],
            [dropped["shard"], dropped["row"], ids, dropped["id"],
             *(pa.nulls(len(lost), field.type) for field in list(_FINDINGS)[4:])],
        ]
        return pa.concat_tables([pa.table(columns, schema=_FINDINGS) for columns in tables])

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        return with_verdicts(batch, findings.filter(pc.is_valid(findings.column("cause"))), first_row, self.verdict)

    def published(self, findings: pa.Table) -> pa.Table:
        return published_pairs(findings)


def published_pairs(findings: pa.Table) -> pa.Table:
    """The pairs among findings of a last round, without places."""
    return findings.filter(pc.is_valid(findings.column("other"))).drop_columns(["shard", "row", "cause"])


def cluster_names(
    worse: npt.NDArray[np.int64], better: npt.NDArray[np.int64], ids: pa.Array | pa.ChunkedArray
) -> pa.Array | pa.ChunkedArray:
    """Of each pair of documents, the id of the best document that is connected with them; `ids` are by number."""
    best = best_of_component(worse, better, len(ids))
    return ids.take(pa.array(np.where(best[worse] >= 0, best[worse], worse)))


def with_verdicts(batch: pa.RecordBatch, findings: pa.Table, first_row: int, verdict: str) -> pa.RecordBatch:
    """The batch with the verdict and the cause of each finding written in."""
    verdicts, causes = batch.column("verdict").to_pylist(), batch.column("cause").to_pylist()
    for row, cause in zip(findings.column("row").to_pylist(), findings.column("cause").to_pylist(), strict=True):
        verdicts[row - first_row], causes[row - first_row] = verdict, cause
    return with_columns(batch, {"verdict": pa.array(verdicts, pa.string()), "cause": pa.array(causes, pa.string())})
