# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Second round of SimHash: hashes that differ in few bits, found by blocks that they share.

Cut into b blocks, two hashes that differ in at most d bits have at least b - d equal blocks (Manku, Jain, Das Sarma
2007). So hashes meet once for each choice of b - d blocks; a pair that meets more than once counts where its first
equal blocks are. In: one document for each hash. Out: pairs, on the worse document.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange
from roots_pipeline.dedup.row_lists import collect, spread
from roots_pipeline.dedup.simhash_survivors import EDGES, SimHashSettings
from roots_pipeline.text.hashes import MULTIPLIER, mix
from roots_pipeline.text.memory import allocating, kernel

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("hash", pa.uint64()), pa.field("choice", pa.int32()), pa.field("rank", pa.int32()),
    pa.field("id", pa.large_string()), pa.field("long", pa.bool_()),
])
_FINDINGS = pa.schema([*FINDING_FIELDS, *(pa.field(f"other_{field.name}", field.type) for field in EDGES)])


@dataclass(frozen=True, slots=True)
class NearHashes(Exchange):
    """Pairs of different hashes with at most `distance` different bits (fields: see `simhash.SimHashDuplicates`)."""

    name: ClassVar[str] = "simhash_duplicates: near"
    settings: SimHashSettings
    distance: int
    blocks: int

    @property
    def needs(self) -> tuple[str, ...]:
        own = self.settings
        return ("id", "source", own.column, own.long, own.leads, own.edges)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.settings.edges,)

    def masks(self) -> npt.NDArray[np.uint64]:
        """The bits of each choice of blocks that two near hashes may share, in lexicographic order of blocks."""
        ends = [64 * block // self.blocks for block in range(self.blocks + 1)]
        bits = [sum(1 << bit for bit in range(ends[k], ends[k + 1])) for k in range(self.blocks)]
        chosen = combinations(range(self.blocks), self.blocks - self.distance)
        return np.array([sum(bits[k] for k in choice) for choice in chosen], np.uint64)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        leads = pc.fill_null(batch.column(self.settings.leads), False).to_numpy(zero_copy_only=False)
        masks, rows = self.masks(), np.flatnonzero(leads)
        hashes = batch.column(self.settings.column).take(pa.array(rows)).to_numpy()
        choice = np.tile(np.arange(len(masks), dtype=np.int32), len(rows))
        of = np.repeat(rows, len(masks))
        keys = hash_keys((hashes[:, None] & masks).ravel() + choice.astype(np.uint64) * MULTIPLIER)
        at = pa.array(of)
        columns = [
            keys, np.full(len(of), shard, np.int32), of + first_row, np.repeat(hashes, len(masks)), choice,
            self.settings.ranks(batch).take(at), batch.column("id").take(at).cast(pa.large_string()),
            batch.column(self.settings.long).take(at),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        by_rank = [(name, "ascending") for name in ("key", "choice", "rank", "id", "shard", "row")]
        entries = entries.take(pc.sort_indices(entries, sort_keys=by_rank)).combine_chunks()
        key, hashes, choice = (entries.column(name).to_numpy() for name in ("key", "hash", "choice"))
        new = np.append(True, (key[1:] != key[:-1]) | (choice[1:] != choice[:-1]))[: len(key)]
        bounds = np.append(np.flatnonzero(new), len(key))
        pairs = _near_pairs(bounds, hashes, choice, self.masks(), self.distance)
        better, worse = entries.take(pa.array(pairs[:, 0])), entries.take(pa.array(pairs[:, 1]))
        columns = [
            worse["shard"], worse["row"], pa.nulls(len(pairs), pa.string()), better["shard"], better["row"],
            better["rank"], better["id"], better["long"], pairs[:, 2].astype(np.int32),
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        if self.settings.edges not in batch.schema.names:
            return batch
        before, rows = spread(batch.column(self.settings.edges))
        found = findings.select(_FINDINGS.names[3:]).rename_columns(EDGES.names)
        edges = pa.concat_tables([before.cast(EDGES), found.cast(EDGES)])
        rows = np.append(rows, findings.column("row").to_numpy() - first_row)
        return with_columns(batch, {self.settings.edges: collect(edges, rows, batch.num_rows)})


def hash_keys(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Keys whose high bits are spread evenly, as partitions need them."""
    keys = np.empty(len(values), np.uint64)
    _hash_keys(values, keys)
    return keys


@kernel
def _hash_keys(values, keys):
    for k in range(keys.size):
        keys[k] = mix(mix(values[k] * MULTIPLIER) * MULTIPLIER)


@allocating
def _near_pairs(bounds, hashes, choice, masks, distance):
    """(better, worse, different bits) of all pairs of a group that are near and have no earlier choice in common."""
    pairs, found = np.empty((64, 3), np.int64), 0
    for group in range(bounds.size - 1):
        start, stop = bounds[group], bounds[group + 1]
        for k in range(start + 1, stop):
            if found + k - start > len(pairs):
                pairs = np.concatenate((pairs, np.empty((len(pairs) + k - start, 3), np.int64)))
            found = _neighbours(start, k, hashes, choice[k], masks, distance, pairs, found)
    return pairs[:found]


@kernel
def _neighbours(start, k, hashes, choice, masks, distance, pairs, found):
    for h in range(start, k):
        different = hashes[h] ^ hashes[k]
        bits = _count_bits(different)
        if 0 < bits <= distance:
            first = 0
            while different & masks[first]:
                first += 1
            if first == choice:
                pairs[found, 0], pairs[found, 1], pairs[found, 2] = h, k, bits
                found += 1
    return found


@kernel
def _count_bits(value):
    count = 0
    while value:
        value &= value - np.uint64(1)
        count += 1
    return count
