"""Documents of a finished corpus by id: one pass over the ids, and text only of the row groups that hold one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.storage import join
from roots_pipeline.report.histograms import PARTS
from roots_pipeline.report.reading import parquet_files, strings


@dataclass(frozen=True, slots=True)
class Found:
    """A document. `text` is its beginning, None if it was not stored; `verdict` None if it was kept."""

    id: str
    source: str
    language: str
    verdict: str | None
    text: str | None


def find_documents(corpus: str, ids: Collection[str], characters: int) -> dict[str, Found]:
    """The documents with these ids, as far as there are any; of several with one id, the first."""
    wanted = pa.array(sorted(ids), pa.string())
    found: dict[str, Found] = {}
    if not ids:
        return found
    for part in PARTS:
        columns = ["id", "source", "language", *(["verdict"] if part == PARTS[1] else []), "text"]
        for file in parquet_files(join(corpus, part)):
            for group in range(file.num_row_groups):
                column = file.read_row_group(group, columns=["id"], use_threads=False).column("id")
                mask = pc.is_in(column.cast(pa.string()), wanted).to_numpy()
                rows = np.flatnonzero(mask)  # pc.indices_nonzero of nothing ends the process (pyarrow 25)
                if len(rows):
                    table = file.read_row_group(group, columns=columns, use_threads=False).take(pa.array(rows))
                    for entry in _entries(table, characters):
                        found.setdefault(entry.id, entry)
    return found


def _entries(table: pa.Table, characters: int) -> list[Found]:
    text = pc.binary_slice(table.column("text").cast(pa.large_binary()), 0, 4 * characters)
    names = [strings(table.column(name).combine_chunks()) for name in ("id", "source", "language")]
    verdicts = strings(table.column("verdict").combine_chunks()) if "verdict" in table.schema.names else (
        [None] * len(table))
    return [Found(id or "", source or "", language or "", verdict, None if content is None else content[:characters])
            for id, source, language, verdict, content in zip(
                *names, verdicts, strings(text.combine_chunks()), strict=True)]
