"""Repeated passages: every run of at least so many bytes that occurs elsewhere is cut, but for its first copy.

Exact substring deduplication (Lee et al. 2022; ROOTS section 3.2, with 50 bytes) without a suffix array, in parts that
know nothing of each other: windows are gathered into records by anchor (`text.windows`), and records with the same
anchor meet. A byte is cut if it lies in a window of `passage_bytes` bytes that occurs before: in a document of better
rank, or earlier in the same document. Three rounds:

1. `RepeatedPassages`  which anchors occur more than once            four bytes an anchor
2. `EqualPassages`     records that are equal, by 128 bits of hash   hashes of records with repeated anchors
3. `SharedWindows`     records that differ, byte by byte             the bytes of those that may share a window

In: documents. Out: `text` without the passages, `cut_bytes`, and the verdict `repeated_passages` for documents of which
too little is left; their `cause` is a document with an earlier copy of their longest passage. Documents that a stage
before has dropped do not count as copies. A document that still has the first copy of a passage that another one loses
is kept however little is left of it, so no passage leaves the corpus (but for white space).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, CauseIs, Exchange, Map
from roots_pipeline.dedup.passage_codes import CHUNK_SHIFT, encode, repeated
from roots_pipeline.dedup.row_lists import collect, empty_lists
from roots_pipeline.dedup.substring_columns import OPEN, RECORDS, SPANS, PassageColumns, one_chunk
from roots_pipeline.dedup.substring_equal import EqualPassages
from roots_pipeline.dedup.substring_windows import SharedWindows
from roots_pipeline.text.windows import LONGEST_WINDOW, Records, find_records

Keep = Literal["first", "none"]

# A batch sends the codes of its anchors in one chunk, and hears back a bit for each that occurs elsewhere.
_ENTRIES = pa.schema([*KEY_FIELDS, pa.field("codes", pa.large_list(pa.uint32()))])
_FINDINGS = pa.schema([*FINDING_FIELDS, pa.field("key", pa.uint64()), pa.field("repeated", pa.large_binary())])


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
    `minimum_left`  documents that lost something and have fewer bytes left are dropped, but for those that have the
                    first copy of a passage; those with nothing but white space left always are
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
        if not 2 <= self.passage_bytes <= LONGEST_WINDOW:
            raise ValueError(f"passage_bytes must be from 2 to {LONGEST_WINDOW}, not {self.passage_bytes}.")

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
        codes, bounds, _ = encode(self._find(batch).key)
        chunks = np.flatnonzero(np.diff(bounds))
        lists = pa.LargeListArray.from_arrays(np.append(bounds[chunks], bounds[-1]), pa.array(codes))
        count = len(chunks)
        columns = [chunks.astype(np.uint64) << CHUNK_SHIFT, np.full(count, shard, np.int32),
                   np.full(count, first_row), lists]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        if not len(entries):
            return _FINDINGS.empty_table()
        entries = entries.take(pc.sort_indices(entries.column("key"))).combine_chunks()
        key = entries.column("key").to_numpy()
        lists = one_chunk(entries.column("codes"))
        bounds, codes = lists.offsets.to_numpy(), lists.values.to_numpy()
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        mask = repeated(codes, bounds[np.append(starts, len(key))])
        parts = [mask[begin:end] for begin, end in pairwise(bounds.tolist())]
        found = np.array([part.any() for part in parts], bool)
        bits = pa.array([np.packbits(part).tobytes() for part in parts if part.any()], pa.large_binary())
        chosen = entries.filter(pa.array(found))
        columns = [chosen["shard"], chosen["row"], pa.nulls(len(chosen), pa.string()), chosen["key"], bits]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.columns.records not in batch.schema.names:
            return batch
        found = self._find(batch)
        _, bounds, order = encode(found.key)
        mask = found.periodic.copy()  # these may repeat their own windows
        chunks = (findings.column("key").to_numpy() >> CHUNK_SHIFT).astype(np.int64)
        for chunk, bits in zip(chunks.tolist(), findings.column("repeated").to_pylist(), strict=True):
            mine = order[bounds[chunk] : bounds[chunk + 1]]
            mask[mine] |= np.unpackbits(np.frombuffer(bits, np.uint8), count=len(mine)).astype(bool)
        at = np.flatnonzero(mask)
        records = pa.table([column[at] for column in found[1:5]], schema=RECORDS)
        return with_columns(batch, {self.columns.records: collect(records, found.text[at], batch.num_rows)})

    def _find(self, batch: pa.RecordBatch) -> Records:
        return find_records(*text_buffers(batch.column("text")), kept(batch), self.passage_bytes)
