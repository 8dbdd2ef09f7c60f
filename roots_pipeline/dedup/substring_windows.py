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
from roots_pipeline.dedup.passage_groups import find_copies
from roots_pipeline.dedup.passage_windows import holders, shared_windows
from roots_pipeline.dedup.ranks import number_documents, source_ranks
from roots_pipeline.dedup.row_lists import spread
from roots_pipeline.dedup.substring_columns import SPANS, PassageColumns, one_chunk
from roots_pipeline.text.cutting import copy_spans, cut_spans
from roots_pipeline.text.hashes import hash_spans
from roots_pipeline.text.windows import hash_anchors

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("high", pa.uint64()), pa.field("low", pa.uint64()), pa.field("start", pa.int64()),
    pa.field("place", pa.int32()), pa.field("periodic", pa.bool_()), pa.field("split", pa.bool_()),
    pa.field("rank", pa.int32()), pa.field("id", pa.large_string()), pa.field("bytes", pa.large_binary()),
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
        split = records.column("split").to_numpy()
        # Of a split record each window is an entry.
        times = np.where(split, windows, 1)
        of = np.repeat(np.arange(len(rows)), times)
        start = start[of] + np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
        stop = start + np.where(split, 1, windows)[of] + length - 1
        data, offsets = text_buffers(batch.column("text"))
        begin, end = offsets[rows[of]] + start, offsets[rows[of]] + stop
        high, low = np.zeros(len(of), np.uint64), np.zeros(len(of), np.uint64)  # whole records travel as bytes
        alone = split[of]
        high[alone], low[alone] = hash_spans(data, begin[alone], end[alone])
        key, places = high.copy(), records.column("place").to_numpy()[of]
        key[~alone] = hash_anchors(data, (begin + places)[~alone], length)
        at = pa.array(rows[of])
        columns = [
            key, np.full(len(of), shard, np.int32), rows[of] + first_row, high, low, start, places,
            records.column("periodic").to_numpy()[of], alone,
            source_ranks(batch.column("source"), self.prefer).take(at),
            batch.column("id").take(at).cast(pa.large_string()), _slices(data, begin, np.where(alone, begin, end)),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        document, _ = number_documents(entries)
        key, start, high, low = (entries.column(name).to_numpy() for name in ("key", "start", "high", "low"))
        split = entries.column("split").to_numpy()
        lone, whole = np.flatnonzero(split), np.flatnonzero(~split)
        copies = find_copies(high[lone], low[lone], document[lone], start[lone], self.all_copies)
        whole = whole[np.lexsort((start[whole], document[whole], key[whole]))]
        groups = np.flatnonzero(np.append(True, key[whole][1:] != key[whole][:-1])[: len(whole)])
        strings = one_chunk(entries.column("bytes")).take(pa.array(whole))
        places = entries.column("place").to_numpy()[whole]
        places[entries.column("periodic").to_numpy()[whole]] = -1
        shared = shared_windows(
            np.append(groups, len(whole)), *text_buffers(strings), places, self.columns.length, self.all_copies
        )
        cut, held = np.flatnonzero(shared.last >= 0), np.flatnonzero(shared.held_last >= 0)
        holding = copies.twin[:0] if self.all_copies else np.unique(copies.twin)
        nothing = [np.zeros(len(part), np.int64) for part in (copies.repeated, holding)]
        to = np.concatenate([lone[copies.repeated], whole[cut], lone[holding], whole[held]])
        first = np.concatenate([nothing[0], shared.first[cut], nothing[1], shared.held_first[held]])
        last = np.concatenate([nothing[0], shared.last[cut], nothing[1], shared.held_last[held]])
        causes = one_chunk(entries.column("id")).take(pa.array(np.append(lone[copies.twin], whole[shared.twin[cut]])))
        columns = [
            *(entries.column(name).take(pa.array(to)) for name in ("shard", "row")),
            pa.chunked_array([causes.cast(pa.string()), pa.nulls(len(to) - len(causes), pa.string())]),
            start[to] + first, start[to] + last + self.columns.length,
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.columns.spans not in batch.schema.names:
            return batch
        before, rows = spread(batch.column(self.columns.spans))
        spans = pa.concat_tables([before.cast(SPANS), findings.select(SPANS.names).cast(SPANS)]).combine_chunks()
        rows = np.append(rows, findings.column("row").to_numpy() - first_row)
        start, stop = spans.column("start").to_numpy(), spans.column("stop").to_numpy()
        goes = spans.column("cause").is_valid().to_numpy()
        order = np.lexsort((start, rows))
        cut = order[goes[order]]
        text, lost = cut_spans(*text_buffers(batch.column("text")), rows[cut], start[cut], stop[cut])
        batch = with_columns(batch, {
            "text": text, "cut_bytes": pc.add(batch.column("cut_bytes"), pa.array(lost.astype(np.float64)))
        })
        empty = pc.equal(pc.binary_length(pc.utf8_trim_whitespace(text)), 0).to_numpy(zero_copy_only=False)
        short = (lost > 0) & (empty | (pc.binary_length(text).to_numpy() < self.minimum_left))
        short &= empty | ~holders(rows[order], start[order], stop[order], goes[order], short, self.columns.length)
        if not short.any():
            return batch
        # The cause is that of the longest span, the first of equals; sorted last, it is the one that stays.
        cut = cut[short[rows[cut]]]
        cut = cut[np.lexsort((-start[cut], (stop - start)[cut], rows[cut]))]
        longest = cut[np.append(rows[cut][1:] != rows[cut][:-1], True)]
        causes = one_chunk(spans.column("cause")).take(pa.array(longest))
        verdicts = pa.array([self.verdict] * len(longest), pa.string())
        return with_columns(batch, {
            "verdict": pc.replace_with_mask(batch.column("verdict"), pa.array(short), verdicts),
            "cause": pc.replace_with_mask(batch.column("cause"), pa.array(short), causes),
        })


def _slices(data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> pa.Array:
    """The bytes `data[begin[i]:end[i]]` as large_binary."""
    out, bounds = copy_spans(data, begin, end)
    return pa.Array.from_buffers(pa.large_binary(), len(begin), [None, pa.py_buffer(bounds), pa.py_buffer(out)])
