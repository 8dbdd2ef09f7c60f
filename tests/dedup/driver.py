"""Runs an exchange with all its rounds by hand: any shards, any partitions, any order of arrival."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import DOCUMENT_SCHEMA, make_batch
from roots_pipeline.core.stages import Exchange

Rows = Sequence[Mapping[str, Any]]


@dataclass
class Outcome:
    """What a run of all rounds left behind."""

    rows: list[dict[str, Any]]
    entries: list[pa.Table] = field(default_factory=list)  # of each round
    findings: list[pa.Table] = field(default_factory=list)

    def kept(self) -> set[str]:
        return {row["id"] for row in self.rows if row["verdict"] is None}

    def dropped(self) -> dict[str, str]:
        """Id to cause."""
        return {row["id"]: row["cause"] for row in self.rows if row["verdict"] is not None}


def run(stage: Exchange, rows: Rows, shards: int = 1, partitions: int = 1, seed: int | None = None,
        batch_rows: int = 1000) -> Outcome:
    """All rounds over documents dealt out to shards; with a seed, entries arrive in random order."""
    dice = random.Random(seed)
    dealt = [list(rows[number::shards]) for number in range(shards)]
    batches = [[make_batch(part[at : at + batch_rows]) for at in range(0, max(len(part), 1), batch_rows)]
               for part in dealt]
    outcome = Outcome([])
    for exchange in stage.rounds():
        prepare = exchange.prepare()
        if prepare is not None:
            batches = [[prepare(batch) for batch in part] for part in batches]
        emitted = [exchange.emit(_needed(batch, exchange), shard, first)
                   for shard, part in enumerate(batches) for first, batch in _numbered(part)]
        entries = pa.concat_tables(emitted).combine_chunks()
        if seed is not None:
            order = list(range(len(entries)))
            dice.shuffle(order)
            entries = entries.take(pa.array(order, pa.int64())).combine_chunks()
        count = exchange.partitions or partitions
        home = ((entries.column("key").to_numpy() >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
        found = pa.concat_tables([
            exchange.resolve(entries.take(pa.array(np.flatnonzero(home == part))).combine_chunks())
            for part in range(count)
        ]).combine_chunks()
        found = found.take(pc.sort_indices(found, sort_keys=[("shard", "ascending"), ("row", "ascending")]))
        batches = [[_apply(exchange, batch, found, shard, first) for first, batch in _numbered(part)]
                   for shard, part in enumerate(batches)]
        outcome.entries.append(entries)
        outcome.findings.append(found)
    done = [[_public(row) for batch in part for row in batch.to_pylist()] for part in batches]
    outcome.rows = [done[number % shards][number // shards] for number in range(len(rows))]
    return outcome


def _public(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def _numbered(part: Sequence[pa.RecordBatch]) -> list[tuple[int, pa.RecordBatch]]:
    firsts = np.cumsum([0, *(batch.num_rows for batch in part)])
    return [(int(first), batch) for first, batch in zip(firsts, part, strict=False)]


def _needed(batch: pa.RecordBatch, exchange: Exchange) -> pa.RecordBatch:
    names = [name for name in batch.schema.names if name in {*exchange.needs, "verdict", "cause"}]
    assert set(exchange.needs) <= set(names)
    return batch.select(names)


def _apply(exchange: Exchange, batch: pa.RecordBatch, found: pa.Table, shard: int, first: int) -> pa.RecordBatch:
    mine = found.filter(pc.equal(found.column("shard"), shard))
    begin, end = np.searchsorted(mine.column("row").to_numpy(), [first, first + batch.num_rows])
    names = {*exchange.needs, *exchange.gives, "verdict", "cause"}
    view = batch.select([name for name in batch.schema.names if name in names])
    after = exchange.apply(view, mine.slice(begin, end - begin), first)
    assert set(after.schema.names) == set(view.schema.names)
    for name in after.schema.names:
        if name in exchange.gives:
            assert after.schema.field(name).type == batch.schema.field(name).type, name
            batch = batch.set_column(batch.schema.names.index(name), name, after.column(name))
        else:
            assert after.column(name).equals(view.column(name)), f"{exchange.name} changed {name}"
    return batch


def document(name: str, text: str, source: str = "s", **more: Any) -> dict[str, Any]:
    """A row for `run`."""
    assert set(more) <= set(DOCUMENT_SCHEMA.names)
    return {"id": name, "text": text, "source": source, **more}
