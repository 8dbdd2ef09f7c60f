"""Third round of passage cutting: different records with the same anchor, window by window; then the cut.

In: texts, the spans that are known to be repeated and the records left to compare (second round). Their bytes meet by
anchor and are compared byte by byte. If too many records share an anchor (a run of blanks, a ruled line), each of their
windows goes its own way, as 128 bits of hash. Out: texts without the repeated passages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.passage_windows import shared_windows
from roots_pipeline.dedup.ranks import number_documents, source_ranks
from roots_pipeline.dedup.row_lists import spread
from roots_pipeline.dedup.substring_columns import SPANS, PassageColumns, equal_spans
from roots_pipeline.text.cutting import copy_spans, cut_spans
from roots_pipeline.text.windows import hash_spans

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("high", pa.uint64()), pa.field("low", pa.uint64()), pa.field("start", pa.int64()),
    pa.field("split", pa.bool_()), pa.field("rank", pa.int32()), pa.field("id", pa.large_string()),
    pa.field("bytes", pa.large_binary()),
])
_FINDINGS = pa.schema([*FINDING_FIELDS, *list(SPANS)[:2]])


@dataclass(frozen=True, slots=True)
class SharedWindows(Exchange):
    """Spans that records with the same anchor share; cuts all spans (fields: see `substring.RepeatedPassages`)."""

    name: ClassVar[str] = "repeated_passages: windows"
    columns: PassageColumns
    all_copies: bool
    prefer: tuple[str, ...]
    verdict: str
    minimum_left: int

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", "text", "verdict", "cause", "cut_bytes", self.columns.spans, self.columns.open)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text", "verdict", "cause", "cut_bytes")

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        length = self.columns.length
        records, rows = spread(batch.column(self.columns.open))
        start, windows = records.column("start").to_numpy(), records.column("windows").to_numpy()
        anchor, split = records.column("anchor").to_numpy(), records.column("split").to_numpy(zero_copy_only=False)
        # Of a split record each window is an entry.
        times = np.where(split, windows, 1)
        of = np.repeat(np.arange(len(rows)), times)
        start = start[of] + np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
        stop = start + np.where(split, 1, windows)[of] + length - 1
        data, offsets = text_buffers(batch.column("text"))
        begin, end = offsets[rows[of]] + start, offsets[rows[of]] + stop
        high, low = hash_spans(data, begin, end)
        at = pa.array(rows[of])
        columns = [
            np.where(split[of], high, anchor[of]), np.full(len(of), shard, np.int32), rows[of] + first_row, high, low,
            start, split[of], source_ranks(batch.column("source"), self.prefer).take(at),
            batch.column("id").take(at).cast(pa.large_string()), _slices(data, begin, np.where(split[of], begin, end)),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        document, _ = number_documents(entries)
        split = entries.column("split").to_numpy(zero_copy_only=False)
        lone, whole = np.flatnonzero(split), np.flatnonzero(~split)
        copies = equal_spans(entries.take(pa.array(lone)).combine_chunks(), document[lone], self.all_copies)
        key, start = entries.column("key").to_numpy(), entries.column("start").to_numpy()
        whole = whole[np.lexsort((start[whole], document[whole], key[whole]))]
        groups = np.flatnonzero(np.append(True, key[whole][1:] != key[whole][:-1])[: len(whole)])
        strings = entries.column("bytes").take(pa.array(whole))
        first, last, twin = shared_windows(
            np.append(groups, len(whole)), *text_buffers(strings), self.columns.length, self.all_copies
        )
        shared = np.flatnonzero(last >= 0)
        to = np.append(lone[copies.repeated], whole[shared])
        other = np.append(lone[copies.twin], whole[twin[shared]])
        from_, till = np.zeros(len(to), np.int64), np.zeros(len(to), np.int64)
        from_[len(copies.repeated) :], till[len(copies.repeated) :] = first[shared], last[shared]
        columns = [
            *(entries.column(name).take(pa.array(to)) for name in ("shard", "row")),
            entries.column("id").take(pa.array(other)).cast(pa.string()),
            start[to] + from_, start[to] + till + self.columns.length,
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.columns.spans not in batch.schema.names:
            return batch
        before, rows = spread(batch.column(self.columns.spans))
        found = findings.select(SPANS.names).cast(SPANS)
        spans = pa.concat_tables([before.cast(SPANS), found]).combine_chunks()
        rows = np.append(rows, findings.column("row").to_numpy() - first_row)
        start, stop = spans.column("start").to_numpy(), spans.column("stop").to_numpy()
        order = np.lexsort((start, rows))
        text, cut = cut_spans(*text_buffers(batch.column("text")), rows[order], start[order], stop[order])
        lost = np.flatnonzero(cut > 0)
        left = pc.binary_length(text).to_numpy()[lost]
        blank = pc.equal(pc.binary_length(pc.utf8_trim_whitespace(text.take(pa.array(lost)))), 0)
        short = lost[(left < self.minimum_left) | blank.to_numpy(zero_copy_only=False)]
        # The cause is that of the longest span, the first of equals; sorted last, it is the one that stays.
        order = np.lexsort((-start, stop - start, rows))
        of_row = dict(zip(rows[order].tolist(), order.tolist(), strict=True))
        causes, names = batch.column("cause").to_pylist(), spans.column("cause")
        verdicts = batch.column("verdict").to_pylist()
        for row in short.tolist():
            verdicts[row], causes[row] = self.verdict, names[of_row[row]].as_py()
        total = pc.add(batch.column("cut_bytes"), pa.array(cut.astype(np.float64)))
        return with_columns(batch, {
            "text": text, "verdict": pa.array(verdicts, pa.string()), "cause": pa.array(causes, pa.string()),
            "cut_bytes": total,
        })


def _slices(data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> pa.Array:
    """The bytes `data[begin[i]:end[i]]` as large_binary."""
    out, bounds = copy_spans(data, begin, end)
    return pa.Array.from_buffers(pa.large_binary(), len(begin), [None, pa.py_buffer(bounds), pa.py_buffer(out)])
