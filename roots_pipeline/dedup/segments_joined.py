"""Recordings that come in pieces: segments of one recording become one document (ROOTS `concatenate_lm_fr_ester`).

The id of a segment is `<recording>_id_<number>`. Segments of one source and recording are joined by newlines in the
order of their numbers (then ids, then texts). The first of them becomes the whole recording and keeps its id (the
published code names it after the recording); the others get the verdict `joined_segments` with that id as cause.
Documents with other ids are left alone. The texts of segments travel, so this is for recordings, not for whole corpora.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from roots_pipeline.core.documents import kept, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, CauseIs, Exchange
from roots_pipeline.dedup.survivors import with_verdicts

_ORDER = ("key", "low", "number", "id", "text", "shard", "row")
_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("low", pa.uint64()), pa.field("number", pa.int64()), pa.field("id", pa.large_string()),
    pa.field("text", pa.large_string()),
])
# A finding with a text is for the first segment, one with a cause for any other.
_FINDINGS = pa.schema([*FINDING_FIELDS, pa.field("text", pa.large_string())])


@dataclass(frozen=True, slots=True)
class JoinedSegments(Exchange):
    """Joins documents whose ids are equal up to `mark` and go on with a number."""

    name: ClassVar[str] = "joined_segments"
    cause_is: ClassVar[CauseIs] = "twin"
    mark: str = "_id_"

    def __post_init__(self) -> None:
        if not self.mark:
            raise ValueError("mark must name what stands between the recording and the number of a segment.")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("id", "source", "text", "verdict", "cause")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text", "verdict", "cause")

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        segment = re.compile(f"(.*){re.escape(self.mark)}([0-9]{{1,18}})", re.S)
        ids, sources = batch.column("id").to_pylist(), batch.column("source").to_pylist()
        found = [(row, match) for row in np.flatnonzero(kept(batch)).tolist() if (match := segment.fullmatch(ids[row]))]
        digests = b"".join(xxhash.xxh3_128_digest(f"{sources[row]}\0{match[1]}") for row, match in found)
        halves = np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)
        rows = np.array([row for row, _ in found], np.int64)
        at = pa.array(rows)
        columns = [
            halves[:, 0], np.full(len(rows), shard, np.int32), rows + first_row, halves[:, 1],
            np.array([int(match[2]) for _, match in found], np.int64),
            batch.column("id").take(at).cast(pa.large_string()), batch.column("text").take(at),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        order = [(name, "ascending") for name in _ORDER]
        entries = entries.take(pc.sort_indices(entries, sort_keys=order)).combine_chunks()
        key, low = entries.column("key").to_numpy(), entries.column("low").to_numpy()
        starts = np.ones(len(key), bool)
        starts[1:] = (key[1:] != key[:-1]) | (low[1:] != low[:-1])
        firsts = np.flatnonzero(starts)
        head = firsts[np.cumsum(starts) - 1]  # the first segment of each entry's recording
        sizes = np.diff(np.append(firsts, len(key)))
        several, others = firsts[sizes > 1], np.flatnonzero(~starts)
        joined = ["\n".join(entries["text"].slice(first, size).to_pylist())
                  for first, size in zip(several.tolist(), sizes[sizes > 1].tolist(), strict=True)]
        tables = [
            [entries[name].take(pa.array(several)) for name in ("shard", "row")]
            + [pa.nulls(len(several), pa.string()), pa.array(joined, pa.large_string())],
            [entries[name].take(pa.array(others)) for name in ("shard", "row")]
            + [entries["id"].take(pa.array(head[others])).cast(pa.string()), pa.nulls(len(others), pa.large_string())],
        ]
        return pa.concat_tables([pa.table(columns, schema=_FINDINGS) for columns in tables])

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        is_first = pc.is_valid(findings.column("text"))
        heads = findings.filter(is_first)
        where = np.arange(batch.num_rows)
        where[heads.column("row").to_numpy() - first_row] = batch.num_rows + np.arange(len(heads))
        texts = pa.concat_arrays([batch.column("text"), *heads.column("text").chunks]).take(pa.array(where))
        return with_verdicts(
            with_columns(batch, {"text": texts}), findings.filter(pc.invert(is_first)), first_row, self.name)
