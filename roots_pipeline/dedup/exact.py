"""Exact duplicates: of all documents with equal text, the one of best rank stays.

Equality is that of a 128-bit hash of the text, or of the text without white space (`ignore: white_space`, for code,
as the ROOTS paper did, section 2.1). Rank is the place of the document's source in `prefer`, then its id: a rank
never depends on the order in which documents arrive, so shards and workers cannot change who survives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange, Map
from roots_pipeline.text.hashes import hash_texts, hash_texts_without_space

_ENTRY = pa.schema(
    [*KEY_FIELDS, pa.field("low", pa.uint64()), pa.field("rank", pa.int32()), pa.field("id", pa.string())]
)
_ORDER = [(name, "ascending") for name in ("key", "low", "rank", "id", "shard", "row")]
Ignore = Literal["nothing", "white_space"]


@dataclass(frozen=True, slots=True)
class TextHash(Map):
    """Adds the 128-bit hash of each text as a working column (two uint64 halves; not part of the corpus)."""

    name: ClassVar[str] = "text_hash"
    ignore: Ignore = "nothing"

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        return (f"_hash_high_{self.ignore}", f"_hash_low_{self.ignore}")

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        hashes = (hash_texts if self.ignore == "nothing" else hash_texts_without_space)(data, offsets)
        high, low = self.gives
        return with_columns(batch, {high: pa.array(hashes[:, 0]), low: pa.array(hashes[:, 1])})


@dataclass(frozen=True, slots=True)
class ExactDuplicates(Exchange):
    """Keeps the best-ranked of all documents with equal text; the others name it as their cause.

    `prefer`: names of sources, best first; sources not named rank behind them, all alike.
    """

    name: ClassVar[str] = "exact_duplicates"
    ignore: Ignore = "nothing"
    prefer: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", "verdict", *TextHash(self.ignore).gives)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    def prepare(self) -> Map:
        return TextHash(self.ignore)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        rows = np.flatnonzero(kept(batch))
        taken = batch.take(pa.array(rows))
        high, low = TextHash(self.ignore).gives
        place = {name: rank for rank, name in enumerate(self.prefer)}
        ranks = [place.get(name, len(place)) for name in taken.column("source").to_pylist()]
        columns = [
            taken.column(high), pa.array(np.full(len(rows), shard, np.int32)), pa.array(rows + first_row),
            taken.column(low), pa.array(ranks, pa.int32()), taken.column("id"),
        ]
        return pa.table(columns, schema=_ENTRY)

    def resolve(self, entries: pa.Table) -> pa.Table:
        ordered = entries.take(pc.sort_indices(entries, sort_keys=_ORDER)).combine_chunks()
        key, low = ordered.column("key").to_numpy(), ordered.column("low").to_numpy()
        same = np.zeros(len(key), bool)  # same text as the entry before
        same[1:] = (key[1:] == key[:-1]) & (low[1:] == low[:-1])
        first = np.maximum.accumulate(np.where(same, 0, np.arange(len(key))))
        lost = np.flatnonzero(same)
        columns = [
            ordered.column("shard").take(pa.array(lost)), ordered.column("row").take(pa.array(lost)),
            ordered.column("id").take(pa.array(first[lost])),
        ]
        return pa.table(columns, schema=pa.schema(FINDING_FIELDS))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        verdicts, causes = batch.column("verdict").to_pylist(), batch.column("cause").to_pylist()
        for row, cause in zip(findings.column("row").to_pylist(), findings.column("cause").to_pylist(), strict=True):
            verdicts[row - first_row], causes[row - first_row] = self.name, cause
        return with_columns(batch, {"verdict": pa.array(verdicts, pa.string()), "cause": pa.array(causes, pa.string())})
