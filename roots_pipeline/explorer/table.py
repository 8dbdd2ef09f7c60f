"""The measures of a finished corpus in memory, and the way back to each document's text.

In: `documents/` and `rejected/` of a corpus folder. Out: one Arrow table (id, source, language, verdict, cause, bytes,
measures), a row a document. Of a corpus with more than `limit` documents, every k-th row group is read; texts stay on
disk, and only their lengths are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.columns import open_parquet
from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.storage import join, list_files

LIMIT = 1_000_000
_COMMAND = "python -m roots_pipeline run"


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """Documents and their measures; `group` is the group of each document's source.

    `every`: only every so many-th row group was read. The column `bytes` is null where the text was not stored whole.
    """

    folder: str
    manifest: Manifest
    table: pa.Table
    measures: tuple[str, ...]
    group: npt.NDArray[np.str_]
    every: int
    files: tuple[str, ...]
    place: npt.NDArray[np.int64]  # rows of (file, row group, row in it)

    def texts(self, rows: Iterable[int]) -> list[str | None]:
        """The stored texts of some rows, in their order; None where a rejected document's was not stored."""
        found: dict[int, str | None] = {}
        wanted = sorted(rows, key=lambda row: tuple(self.place[row]))
        last, column = None, pa.chunked_array([], pa.large_string())
        for row in wanted:
            file, group, at = (int(value) for value in self.place[row])
            if (file, group) != last:
                column = open_parquet(self.files[file]).read_row_group(group, ["text"], use_threads=False).column(0)
                last = file, group
            found[row] = column[at].as_py()
        return [found[row] for row in rows]


def read_measures(folder: str, *, limit: int = LIMIT) -> MeasureTable:
    """Read a finished corpus. Raises StaleDataError if there is none, or if it is not what this version writes."""
    manifest = read_manifest(folder, made_by=_COMMAND)
    check_files(folder, manifest)
    try:
        total, full = int(manifest.counts["read"]), manifest.config["rejected_text"] == "full"
        groups = {str(source["name"]): str(source["group"]) for source in manifest.config["sources"]}
    except (KeyError, TypeError, ValueError) as error:
        raise StaleDataError("its manifest is of another version.", where=folder, hint=f"Run `{_COMMAND}` again."
                             ) from error
    every = max(1, -(-total // limit))
    tables: list[pa.Table] = []
    files: list[str] = []
    places: list[npt.NDArray[np.int64]] = []
    seen = 0
    for part in ("documents", "rejected"):
        for path in list_files(join(folder, part), ".parquet"):
            file = open_parquet(path)
            files.append(path)
            for group in range(file.num_row_groups):
                seen += 1
                if (seen - 1) % every == 0:
                    read = file.read_row_group(group, use_threads=False)
                    tables.append(_slim(read, exact=part == "documents" or full))
                    at = np.arange(len(read))
                    places.append(np.stack([np.full_like(at, len(files) - 1), np.full_like(at, group), at], axis=1))
    table = pa.concat_tables(tables, promote_options="default").combine_chunks() if tables else _empty()
    place = np.concatenate(places) if places else np.empty((0, 3), np.int64)
    names = tuple(field.name for field in table.schema
                  if pa.types.is_floating(field.type) and field.name not in DOCUMENT_SCHEMA.names)
    of_row = np.array([groups.get(source, "") for source in table.column("source").to_pylist()], np.str_)
    return MeasureTable(folder, manifest, table, names, of_row, every, tuple(files), place)


def _slim(read: pa.Table, *, exact: bool) -> pa.Table:
    """The columns that stay in memory, the text as its length."""
    length = len(read)
    columns: dict[str, Any] = {name: read.column(name) for name in ("id", "source", "language")}
    for name in ("verdict", "cause"):
        columns[name] = read.column(name) if name in read.schema.names else pa.nulls(length, pa.string())
    columns["bytes"] = pc.binary_length(read.column("text")) if exact else pa.nulls(length, pa.int64())
    for field in read.schema:
        if pa.types.is_floating(field.type):
            columns[field.name] = read.column(field.name)
    return pa.table(columns)


def _empty() -> pa.Table:
    names = ("id", "source", "language", "verdict", "cause")
    return pa.table({**{name: pa.nulls(0, pa.string()) for name in names}, "bytes": pa.nulls(0, pa.int64())})
