"""Last round of repeated lines: which copies of a repeated line go, and texts without them.

In: texts, and the keys of lines that occur often enough (round before). Lines meet by 128 bits of hash, so a chance
meeting of 64-bit keys cuts nothing. Out: `text`, `cut_bytes`, and the verdict for documents that lost too much.
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
from roots_pipeline.dedup.line_keys import BatchLines, LineSettings, lines_of, taking_part, texts_of
from roots_pipeline.dedup.ranks import source_ranks
from roots_pipeline.text.segments import without_segments

Numbers = npt.NDArray[np.int64]

# Of each batch that has a line: its best document with it (`times` is the count of the whole batch), and the next best
# (`times` is 0), which is the cause for the best one.
_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("low", pa.uint64()), pa.field("times", pa.int64()), pa.field("least", pa.int64()),
    pa.field("rank", pa.int32()), pa.field("id", pa.large_string()),
])
_FINDINGS = pa.schema([
    *FINDING_FIELDS, pa.field("key", pa.uint64()), pa.field("low", pa.uint64()), pa.field("other", pa.large_string()),
    pa.field("stays", pa.bool_()),
])


@dataclass(frozen=True, slots=True)
class LineCopies(Exchange):
    """Cuts lines (fields: see `lines.RepeatedLines`)."""

    name: ClassVar[str] = "repeated_lines: copies"
    settings: LineSettings
    verdict: str
    prefer: tuple[str, ...]
    minimum_left: int
    minimum_segments: int

    @property
    def needs(self) -> tuple[str, ...]:
        own = self.settings
        return ("id", "source", "text", "verdict", "cause", "cut_bytes", *own.scope_needs, own.documents, own.repeated)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text", "verdict", "cause", "cut_bytes")

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        own = self.settings
        repeated = np.unique(pc.struct_field(pc.list_flatten(batch.column(own.repeated)), "key").to_numpy())
        if len(repeated) == 0:
            return _ENTRIES.empty_table()
        lines = lines_of(batch, taking_part(batch, own), own)
        chosen = np.flatnonzero(np.isin(lines.high, repeated))
        rank = source_ranks(batch.column("source"), self.prefer)
        documents = pa.table({"rank": rank, "id": batch.column("id").cast(pa.large_string())})
        place = np.empty(batch.num_rows, np.int64)  # of each row among the documents of the batch, the best is 0
        keys = [("rank", "ascending"), ("id", "ascending")]
        place[pc.sort_indices(documents, sort_keys=keys).to_numpy()] = np.arange(batch.num_rows)
        order = chosen[np.lexsort((place[lines.rows[chosen]], lines.low[chosen], lines.high[chosen]))]
        high, low, row = lines.high[order], lines.low[order], lines.rows[order]
        new_line, new_row = _changes(high, low), _changes(high, low, row)
        starts = np.flatnonzero(new_line)
        counted = new_row if own.count == "documents" else np.ones(len(order), bool)
        times = np.add.reduceat(counted.astype(np.int64), starts) if len(starts) else np.empty(0, np.int64)
        # The second document of a line is at the second change of row within it.
        changes = np.flatnonzero(new_row)
        second = changes[1:][new_line[changes[:-1]] & ~new_line[changes[1:]]]
        at = np.append(starts, second)
        taken = documents.take(pa.array(row[at]))
        columns = [
            high[at], np.full(len(at), shard, np.int32), row[at] + first_row, low[at],
            np.append(times, np.zeros(len(second), np.int64)), own.least(batch)[row[at]], taken["rank"], taken["id"],
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        by_rank = [(name, "ascending") for name in ("key", "low", "rank", "id", "shard", "row")]
        entries = entries.take(pc.sort_indices(entries, sort_keys=by_rank)).combine_chunks()
        high, low, times = (entries.column(name).to_numpy() for name in ("key", "low", "times"))
        starts = np.flatnonzero(_changes(high, low))
        if len(starts) == 0:
            return _FINDINGS.empty_table()
        sizes = np.diff(np.append(starts, len(high)))
        enough = np.add.reduceat(times, starts) >= entries.column("least").to_numpy()[starts]
        best = np.repeat(starts, sizes)
        second = np.where(np.repeat(sizes, sizes) > 1, best + 1, -1)
        found = np.flatnonzero(np.repeat(enough, sizes) & (times > 0))
        ids = entries.column("id")
        other = pa.array(second[found], mask=second[found] < 0)
        stays = (best[found] == found) & (self.settings.keep == "first")
        columns = [
            entries["shard"].take(pa.array(found)), entries["row"].take(pa.array(found)),
            ids.take(pa.array(best[found])).cast(pa.string()), high[found], low[found], ids.take(other), stays,
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        own = self.settings
        if own.repeated not in batch.schema.names or (len(findings) == 0 and not own.strip_lines):
            return batch
        rows = taking_part(batch, own)
        lines = lines_of(batch, rows, own)
        finding = _finding_of(lines, findings)
        goes = finding >= 0
        goes[self._first_copies(lines, finding, findings, first_row)] = False
        runs = np.flatnonzero(goes)
        cut = np.zeros(len(lines.segments.text), bool)
        for step in range(own.run):
            cut[lines.first[runs] + step] = True
        taken = text_buffers(texts_of(batch, rows))
        text, lost = without_segments(*taken, lines.segments, cut, own.strip_lines)
        dropped = self._too_little(text, lost, lines, cut)
        verdicts, causes = batch.column("verdict").to_pylist(), batch.column("cause").to_pylist()
        for number, cause in zip(dropped.tolist(), _causes(batch, rows, dropped, lines, runs, finding, findings),
                                 strict=True):
            verdicts[rows[number]], causes[rows[number]] = self.verdict, cause
        if len(rows) < batch.num_rows:
            where = np.arange(batch.num_rows) + len(rows)
            where[rows] = np.arange(len(rows))
            text = pa.concat_arrays([text, batch.column("text")]).take(pa.array(where))
        total = batch.column("cut_bytes").to_numpy().copy()
        total[rows] += lost
        return with_columns(batch, {
            "text": text,
            "verdict": pa.array(verdicts, pa.string()), "cause": pa.array(causes, pa.string()),
            "cut_bytes": pa.array(total),
        })

    def _first_copies(self, lines: BatchLines, finding: Numbers, findings: pa.Table, first_row: int) -> Numbers:
        """The copies that stay: of lines whose best document is in this batch, the first one in it."""
        stays = findings.column("stays").to_numpy(zero_copy_only=False)
        home = findings.column("row").to_numpy() - first_row
        at = np.flatnonzero(finding >= 0)
        at = at[stays[finding[at]] & (lines.rows[at] == home[finding[at]])]
        _, first = np.unique(finding[at], return_index=True)
        copies: Numbers = at[first]
        return copies

    def _too_little(self, text: pa.Array, lost: Numbers, lines: BatchLines, cut: npt.NDArray[np.bool_]) -> Numbers:
        """Which of the texts are dropped."""
        left = pc.binary_length(text).to_numpy()
        blank = pc.equal(pc.binary_length(pc.utf8_trim_whitespace(text)), 0).to_numpy(zero_copy_only=False)
        segments = lines.segments
        filled = ~cut & (segments.stop > segments.start)
        remaining = np.bincount(segments.text[filled], minlength=len(text))
        touched = np.zeros(len(text), bool)
        touched[segments.text[cut]] = True
        short = touched & ((left < self.minimum_left) | (remaining < self.minimum_segments))
        return np.flatnonzero(short | (blank & (lost > 0)))


def _changes(*columns: npt.NDArray[np.uint64] | Numbers) -> npt.NDArray[np.bool_]:
    """Where any of the columns differs from the entry before."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _finding_of(lines: BatchLines, findings: pa.Table) -> Numbers:
    """For each line the number of its finding, or -1."""
    found = np.full(len(lines.high), -1, np.int64)
    key, low = findings.column("key").to_numpy(), findings.column("low").to_numpy()
    order = np.argsort(key, kind="stable")
    first, last = (np.searchsorted(key[order], lines.high, side) for side in ("left", "right"))
    for step in range(int((last - first).max(initial=0))):  # more than one only if keys of 64 bits meet by chance
        at = np.flatnonzero(first + step < last)
        candidate = order[first[at] + step]
        equal = low[candidate] == lines.low[at]
        found[at[equal]] = candidate[equal]
    return found


def _causes(
    batch: pa.RecordBatch, rows: Numbers, dropped: Numbers, lines: BatchLines, runs: Numbers, finding: Numbers,
    findings: pa.Table,
) -> list[str]:
    """For each dropped text: a document that has its longest line, another one if there is any."""
    segments = lines.segments
    run = segments.stop[lines.first[runs]] - segments.start[lines.first[runs]]
    text = segments.text[lines.first[runs]]
    order = np.lexsort((lines.first[runs], -run, text))
    longest = dict(zip(text[order][::-1].tolist(), runs[order][::-1].tolist(), strict=True))
    ids, causes, others = batch.column("id"), findings.column("cause"), findings.column("other")
    result: list[str] = []
    for number in dropped.tolist():
        own = ids[rows[number]].as_py()
        if number not in longest:  # it held nothing but white space
            result.append(own)
            continue
        which = int(finding[longest[number]])
        cause = causes[which].as_py()
        result.append(cause if cause != own else others[which].as_py() or own)
    return result
