"""Second round of passage cutting: records that are equal, byte for byte by 128 bits of hash.

In: the records of each text whose anchor occurs more than once (first round). All copies of a record but the best are
wholly repeated; only the best one goes on, and only if it may share a window with another record that has its anchor,
or if it is periodic. So a passage that occurs a million times costs a million small entries here, and its bytes once in
the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.passage_groups import Entries, group_records
from roots_pipeline.dedup.ranks import number_documents, source_ranks
from roots_pipeline.dedup.row_lists import collect, spread
from roots_pipeline.dedup.substring_columns import OPEN, RECORDS, SPANS, PassageColumns, one_chunk
from roots_pipeline.text.hashes import hash_spans
from roots_pipeline.text.windows import hash_anchors, hash_sides

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("high", pa.uint64()), pa.field("low", pa.uint64()), pa.field("before", pa.uint32()),
    pa.field("behind", pa.uint32()), *RECORDS, pa.field("rank", pa.int32()),
    pa.field("id", pa.large_string()),
])
# A finding with a cause is a record to cut; one without is held here for others, or has to be compared further.
_FINDINGS = pa.schema([*FINDING_FIELDS, *OPEN, pa.field("held", pa.bool_())])


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
        length = self.columns.length
        begin = offsets[rows] + records.column("start").to_numpy()
        end = begin + records.column("windows").to_numpy() + length - 1
        places = records.column("place").to_numpy()
        at = pa.array(rows)
        columns = [
            hash_anchors(data, begin + places, length), np.full(len(rows), shard, np.int32), rows + first_row,
            *hash_spans(data, begin, end), *hash_sides(data, begin, end, places, length),
            *records.columns,
            source_ranks(batch.column("source"), self.prefer).take(at),
            batch.column("id").take(at).cast(pa.large_string()),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        column = {name: one_chunk(entries.column(name)).to_numpy(zero_copy_only=False)
                  for name in ("key", "high", "low", "start", "before", "behind", "periodic")}
        found = group_records(
            Entries(column["key"], column["high"], column["low"], number_documents(entries)[0], column["start"],
                    column["before"], column["behind"], column["periodic"]),
            self.all_copies,
        )
        copies, open_ = np.flatnonzero(found.twin >= 0), np.flatnonzero(found.different)
        holding = copies[:0] if self.all_copies else np.unique(found.twin[copies])
        to = np.concatenate([copies, open_, holding])
        cause = one_chunk(entries.column("id")).take(pa.array(found.twin[copies])).cast(pa.string())
        chosen = entries.select(["shard", "row", *RECORDS.names]).take(pa.array(to))
        split, held = np.zeros(len(to), bool), np.zeros(len(to), bool)
        split[len(copies) :][: len(open_)] = found.different[open_] > self.split_above
        held[len(copies) + len(open_) :] = True
        columns = [*chosen.columns[:2], pa.chunked_array([cause, pa.nulls(len(to) - len(copies), pa.string())]),
                   *chosen.columns[2:], split, held]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.columns.spans not in batch.schema.names:
            return batch
        rows = findings.column("row").to_numpy() - first_row
        known = findings.column("cause").is_valid().to_numpy() | findings.column("held").to_numpy()
        whole, left = (findings.filter(pa.array(mask)) for mask in (known, ~known))
        start = whole.column("start").to_numpy()
        stop = start + whole.column("windows").to_numpy() + self.columns.length - 1
        spans = pa.table([start, stop, whole.column("cause")], schema=SPANS)
        return with_columns(batch, {
            self.columns.spans: collect(spans, rows[known], batch.num_rows),
            self.columns.open: collect(left.select(OPEN.names), rows[~known], batch.num_rows),
        })
