"""Second round of passage cutting: records that are equal, byte for byte by 128 bits of hash.

In: the records of each text whose anchor occurs more than once (first round). All copies of a record but the best are
wholly repeated; only the best one goes on, and only if other records have the same anchor or if it is periodic. So a
passage that occurs a million times costs a million small entries here, and its bytes once in the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.ranks import number_documents, source_ranks
from roots_pipeline.dedup.row_lists import collect, spread
from roots_pipeline.dedup.substring_columns import OPEN, RECORDS, SPANS, PassageColumns, equal_spans
from roots_pipeline.text.windows import hash_spans

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("high", pa.uint64()), pa.field("low", pa.uint64()), pa.field("start", pa.int64()),
    pa.field("windows", pa.int32()), pa.field("periodic", pa.bool_()), pa.field("rank", pa.int32()),
    pa.field("id", pa.large_string()),
])
# A finding with a cause is a span to cut, one without is a record to be compared further.
_FINDINGS = pa.schema([*FINDING_FIELDS, *OPEN])


@dataclass(frozen=True, slots=True)
class EqualPassages(Exchange):
    """Spans of equal records, and what is left to compare (fields: see `substring.RepeatedPassages`)."""

    name: ClassVar[str] = "repeated_passages: equal"
    columns: PassageColumns
    all_copies: bool
    split_above: int
    prefer: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", "text", self.columns.records)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.columns.spans, self.columns.open)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        records, rows = spread(batch.column(self.columns.records))
        data, offsets = text_buffers(batch.column("text"))
        begin = offsets[rows] + records.column("start").to_numpy()
        high, low = hash_spans(data, begin, begin + records.column("windows").to_numpy() + self.columns.length - 1)
        at = pa.array(rows)
        columns = [
            records.column("anchor"), np.full(len(rows), shard, np.int32), rows + first_row, high, low,
            *(records.column(name) for name in RECORDS.names[:3]),
            source_ranks(batch.column("source"), self.prefer).take(at),
            batch.column("id").take(at).cast(pa.large_string()),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        copies = equal_spans(entries, number_documents(entries)[0], self.all_copies)
        key = entries.column("key").to_numpy()
        best = copies.best[np.argsort(key[copies.best])]  # one of each different record, by anchor
        key = key[best]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        sizes = np.diff(np.append(starts, len(key)))
        different = np.repeat(sizes, sizes)  # how many different records have the anchor
        going_on = (different > 1) | entries.column("periodic").to_numpy(zero_copy_only=False)[best]
        open_, split = best[going_on], different[going_on] > self.split_above
        to = pa.array(np.append(copies.repeated, open_))
        cause = entries.column("id").take(pa.array(copies.twin)).cast(pa.string()).combine_chunks()
        columns = [
            *(entries.column(name).take(to) for name in ("shard", "row")),
            pa.chunked_array([cause, pa.nulls(len(open_), pa.string())]),
            *(entries.column(name).take(to) for name in ("start", "windows", "key")),
            np.append(np.zeros(len(copies.repeated), bool), split),
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.columns.spans not in batch.schema.names:
            return batch
        rows = findings.column("row").to_numpy() - first_row
        cut = findings.column("cause").is_valid().to_numpy()
        start, windows = findings.column("start").to_numpy(), findings.column("windows").to_numpy()
        stop = start + windows + self.columns.length - 1
        spans = pa.table([start, stop, findings.column("cause")], schema=SPANS).filter(pa.array(cut))
        left = findings.select(OPEN.names).filter(pa.array(~cut))
        return with_columns(batch, {
            self.columns.spans: collect(spans, rows[cut], batch.num_rows),
            self.columns.open: collect(left, rows[~cut], batch.num_rows),
        })
