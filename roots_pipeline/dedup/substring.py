"""Repeated passages: every run of at least so many bytes that occurs elsewhere is cut, but for its first copy.

Exact substring deduplication (Lee et al. 2022; ROOTS section 3.2, with 50 bytes) without a suffix array, in parts that
know nothing of each other: windows are gathered into records by anchor (`text.windows`), and records with the same
anchor meet. A byte is cut if it lies in a window of `passage_bytes` bytes that occurs before: in a document of better
rank, or earlier in the same document. Three rounds:

1. `RepeatedPassages`  which anchors occur more than once           places of records, no text
2. `EqualPassages`     records that are equal, by 128 bits of hash   records of repeated anchors, no text
3. `SharedWindows`     records that differ, window by window         the bytes of what is left

In: documents. Out: `text` without the passages, `cut_bytes`, and the verdict `repeated_passages` for documents of which
too little is left; their `cause` is a document with an earlier copy of their longest passage. If that document is
dropped, too, a passage of less than `minimum_left` bytes may leave the corpus altogether.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, CauseIs, Exchange, Map
from roots_pipeline.dedup.row_lists import collect, empty_lists
from roots_pipeline.dedup.substring_columns import OPEN, RECORDS, SPANS, PassageColumns, repeated_keys
from roots_pipeline.dedup.substring_equal import EqualPassages
from roots_pipeline.dedup.substring_windows import SharedWindows
from roots_pipeline.text.windows import find_records

Keep = Literal["first", "none"]


@dataclass(frozen=True, slots=True)
class PreparePassages(Map):
    """Adds the measure `cut_bytes` and empty working columns for the rounds to come."""

    name: ClassVar[str] = "prepare_passages"
    columns: PassageColumns

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    @property
    def gives(self) -> tuple[str, ...]:
        return ("cut_bytes", self.columns.records, self.columns.spans, self.columns.open)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        length = batch.num_rows
        new = {self.columns.records: empty_lists(RECORDS, length), self.columns.spans: empty_lists(SPANS, length),
               self.columns.open: empty_lists(OPEN, length)}
        if "cut_bytes" not in batch.schema.names:  # else a stage before has cut already
            new["cut_bytes"] = pa.array(np.zeros(length))
        return with_columns(batch, new)


@dataclass(frozen=True, slots=True)
class RepeatedPassages(Exchange):
    """Cuts passages of `passage_bytes` bytes or more that occur elsewhere.

    `keep`          `first`: the first copy stays, by rank and then position; `none`: all copies go
    `minimum_left`  documents that lost something and have fewer bytes left are dropped; those with nothing but white
                    space left always are
    `split_above`   so many different records with the same anchor meet in one place; of more, windows meet one by one
    `prefer`        names of sources, best first; sources not named rank behind, then ids decide
    """

    name: ClassVar[str] = "repeated_passages"
    cause_is: ClassVar[CauseIs] = "document"
    passage_bytes: int = 100
    keep: Keep = "first"
    minimum_left: int = 200
    split_above: int = 1 << 16
    prefer: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.passage_bytes < 2:
            raise ValueError(f"passage_bytes must be at least 2, not {self.passage_bytes}.")

    @property
    def columns(self) -> PassageColumns:
        """The working columns of its rounds."""
        return PassageColumns(self.passage_bytes)

    def rounds(self) -> tuple[Exchange, ...]:
        all_copies = self.keep == "none"
        return (
            self,
            EqualPassages(self.columns, all_copies, self.split_above, self.prefer),
            SharedWindows(self.columns, all_copies, self.prefer, self.name, self.minimum_left),
        )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "verdict", self.columns.records)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.columns.records,)

    def prepare(self) -> Map:
        return PreparePassages(self.columns)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        rows = np.flatnonzero(kept(batch))
        found = find_records(*text_buffers(batch.column("text").take(pa.array(rows))), self.passage_bytes)
        columns = [
            found.key, np.full(len(found.key), shard, np.int32), rows[found.text] + first_row, found.start,
            found.windows.astype(np.int32), found.periodic,
        ]
        return pa.table(columns, schema=pa.schema([*KEY_FIELDS, *list(RECORDS)[:3]]))

    def resolve(self, entries: pa.Table) -> pa.Table:
        periodic = entries.column("periodic").to_numpy(zero_copy_only=False)  # may repeat their own windows
        found = entries.filter(pa.array(repeated_keys(entries.column("key").to_numpy()) | periodic))
        columns = [found["shard"], found["row"], pa.nulls(len(found), pa.string()),
                   *(found[name] for name in RECORDS.names[:3]), found["key"]]
        return pa.table(columns, schema=pa.schema([*FINDING_FIELDS, *RECORDS]))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.columns.records not in batch.schema.names:
            return batch
        rows = findings.column("row").to_numpy() - first_row
        return with_columns(batch, {
            self.columns.records: collect(findings.select(RECORDS.names), rows, batch.num_rows)
        })
