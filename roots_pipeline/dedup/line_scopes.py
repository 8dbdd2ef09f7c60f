"""First round of repeated lines: how many documents a data set or domain has, for rules that speak of a share of them.

In: documents that are kept so far. Out: a working column with the number, beside each document.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import xxhash

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, Exchange, Map
from roots_pipeline.dedup.line_keys import LineSettings, taking_part

_DOCUMENTS = pa.field("documents", pa.int64())


@dataclass(frozen=True, slots=True)
class LineScopes(Exchange):
    """Counts documents of each scope; a batch sends one entry for each scope that it has documents of."""

    name: ClassVar[str] = "repeated_lines: scopes"
    settings: LineSettings
    columns: Map

    @property
    def needs(self) -> tuple[str, ...]:
        return ("verdict", *self.settings.scope_needs, self.settings.documents)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.settings.documents,)

    def prepare(self) -> Map:
        return self.columns

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        scopes = self.settings.scopes(batch)
        counts: Counter[str] = Counter()
        first: dict[str, int] = {}
        for row in taking_part(batch, self.settings).tolist():
            scope = scopes[row] or ""
            counts[scope] += 1
            first.setdefault(scope, row + first_row)
        keys = np.array([xxhash.xxh3_64_intdigest(scope) for scope in counts], np.uint64)
        columns = [keys, np.full(len(keys), shard, np.int32), np.array(list(first.values()), np.int64),
                   np.array(list(counts.values()), np.int64)]
        return pa.table(columns, schema=pa.schema([*KEY_FIELDS, _DOCUMENTS]))

    def resolve(self, entries: pa.Table) -> pa.Table:
        keys, which = np.unique(entries.column("key").to_numpy(), return_inverse=True)
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, which, entries.column("documents").to_numpy())
        columns = [entries["shard"], entries["row"], pa.nulls(len(entries), pa.string()), total[which]]
        return pa.table(columns, schema=pa.schema([*FINDING_FIELDS, _DOCUMENTS]))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        column = self.settings.documents
        if column not in batch.schema.names:
            return batch
        scopes = self.settings.scopes(batch)
        rows, totals = (findings.column(name).to_pylist() for name in ("row", "documents"))
        total = {scopes[row - first_row]: number for row, number in zip(rows, totals, strict=True)}
        return with_columns(batch, {column: pa.array([total.get(scope, 0) for scope in scopes], pa.int64())})
