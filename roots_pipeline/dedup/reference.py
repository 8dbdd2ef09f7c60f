"""What a finished corpus leaves behind for the deduplication of later ones: hashes, bands and signatures.

    reference/<stage>/reference.json             settings, shards, sizes and hashes of the tables
    reference/<stage>/<shard>.<table>.parquet    sorted by `key` where there is one, so that a range can be read alone

Only documents that were kept are remembered: it is written from `documents/` of a finished corpus, for any stage that
has `remember`. A later run reads it with `against: [<folder>]`; its settings must be the same. Texts are not copied,
but the reference knows where they are, so that pairs are compared exactly as long as the old corpus is in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.errors import EmptyOutputError, StaleDataError, StorageError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.stages import Map
from roots_pipeline.core.storage import (
    fingerprint,
    from_beside,
    join,
    open_read,
    read_json,
    size_of,
    to_beside,
    write_json,
)
from roots_pipeline.core.tasks import Commit, Engine, Task

FORMAT = 1  # raise it when a hash or a table changes
_ROW_GROUP = 64_000


@runtime_checkable
class Rememberable(Protocol):
    """A stage whose keys can be kept for later corpora."""

    name: Any

    def settings(self) -> dict[str, object]:
        """What two runs must have in common for their keys to be comparable."""

    def hashing(self) -> Map:
        """The map that `remember` needs to have run."""

    def remember(self, batch: pa.RecordBatch, first_row: int) -> dict[str, pa.Table]:
        """Tables of a batch; `first_row` is the place of its first row in the shard."""


@dataclass(frozen=True, slots=True)
class OldShard:
    """One shard of the old corpus: how many documents it has, and where its text was."""

    name: str
    documents: int
    text: str
    text_size: int


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of one stage; `content` changes whenever a table does."""

    folder: str
    settings: dict[str, Any]
    shards: tuple[OldShard, ...]
    content: str

    def paths(self, table: str) -> list[str]:
        """The files of a table, one for each shard."""
        return [join(self.folder, f"{shard.name}.{table}.parquet") for shard in self.shards]

    def without_text(self) -> tuple[str, ...]:
        """Names of the shards whose text is not there any more, or is another file now."""
        return tuple(shard.name for shard in self.shards if size_of(shard.text) != shard.text_size)


def read_reference(folder: str, stage: str, settings: Mapping[str, object]) -> Reference:
    """The reference that another corpus left for a stage. Raises StaleDataError if it does not fit."""
    place = join(folder, stage, "reference.json")
    try:
        value = read_json(place)
    except FileNotFoundError as error:
        raise StaleDataError(f"there is no reference for '{stage}' here.", where=folder,
                             hint="`against` must name a folder that `remember` wrote for this stage.") from error
    try:
        wanted = {"format": FORMAT, **settings}
        found = {"format": value["format"], **value["settings"]}
        shards = tuple(
            OldShard(entry["name"], entry["documents"], from_beside(entry["text"], place), entry["text_size"])
            for entry in value["shards"]
        )
        sizes = {join(folder, stage, f"{entry['name']}.{table}.parquet"): facts["size"]
                 for entry in value["shards"] for table, facts in entry["tables"].items()}
    except (TypeError, KeyError, AttributeError) as error:
        raise StaleDataError(f"this is no reference of a corpus ({error!r}).", where=place,
                             hint="Write it again with `remember`.") from error
    different = [f"{name} is {found.get(name)!r} there and {wanted.get(name)!r} here"
                 for name in sorted({*wanted, *found}) if found.get(name) != wanted.get(name)]
    if different:
        raise StaleDataError(f"the reference was made with other settings: {'; '.join(different)}.", where=place,
                             hint="Give the stage the same settings, or write the reference again.")
    for path, size in sizes.items():
        if (found_size := size_of(path)) != size:
            state = "is missing" if found_size is None else f"has {found_size} bytes instead of {size}"
            raise StaleDataError(f"a table of the reference {state}.", where=path,
                                 hint="Write it again with `remember`.")
    return Reference(join(folder, stage), value["settings"], shards, fingerprint(value))


def check_reference(folder: str, stage: str, settings: Mapping[str, object]) -> None:
    """Raise ValueError, which a recipe reports with its line, if there is no reference that fits."""
    try:
        read_reference(folder, stage, settings)
    except (StaleDataError, StorageError) as error:
        raise ValueError(f"against: {error}") from error


def write_reference(stages: Sequence[Rememberable], corpus: str, folder: str, engine: Engine) -> list[str]:
    """Remember the documents of a finished corpus for some stages; returns the folders written.

    Shards whose text has not changed since are not read again. Raises StaleDataError for an unfinished corpus, and
    EmptyOutputError for one without documents.
    """
    manifest = read_manifest(corpus, made_by="python -m roots_pipeline run")
    files = {name: entry for name, entry in manifest.files.items() if name.startswith("documents/")}
    written = []
    for stage in stages:
        home = join(folder, stage.name)
        names = {name: name.rpartition("/")[2].removesuffix(".parquet") for name in sorted(files)}
        tasks = [
            Task(shard, join(home, f"{shard}.json"), fingerprint([FORMAT, stage.settings(), files[name]["xxh3"]]),
                 remember_shard, {"stage": stage, "documents": join(corpus, name), "output": join(home, shard)})
            for name, shard in names.items()
        ]
        results = engine.run(tasks, f"remember {stage.name}")
        if sum(result["documents"] for result in results) == 0:
            raise EmptyOutputError("there is no document to remember.", where=corpus)
        place = join(home, "reference.json")
        shards = [
            {"name": shard, "text": to_beside(join(corpus, name), place), "text_size": files[name]["size"], **result}
            for (name, shard), result in zip(names.items(), results, strict=True)
        ]
        write_json(place, {"format": FORMAT, "settings": stage.settings(), "shards": shards})
        written.append(home)
    return written


def remember_shard(commit: Commit, *, stage: Rememberable, documents: str, output: str) -> dict[str, Any]:
    """The tables of one shard of a finished corpus."""
    hashing = stage.hashing()
    nothing = pa.RecordBatch.from_pydict({"id": pa.array([], pa.string()), "text": pa.array([], pa.large_string())})
    parts = {name: [table] for name, table in stage.remember(hashing(nothing), 0).items()}
    row = 0
    with open_read(documents) as handle:
        file = pq.ParquetFile(handle)
        for group in range(file.num_row_groups):
            for batch in file.read_row_group(group, columns=["id", "text"]).to_batches():
                for name, table in stage.remember(hashing(batch), row).items():
                    parts[name].append(table)
                row += batch.num_rows
    tables = {}
    for name, pieces in parts.items():
        table = pa.concat_tables(pieces).combine_chunks()
        if "key" in table.schema.names:
            order = [(column, "ascending") for column in table.schema.names]
            table = table.take(pc.sort_indices(table, sort_keys=order))
        path = f"{output}.{name}.parquet"
        with commit.file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd", row_group_size=_ROW_GROUP)
        tables[name] = commit.files[path]
    return {"documents": row, "tables": tables}


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    """A table of a reference, or a file of the corpus it speaks of. Raises StaleDataError if it is gone or damaged."""
    try:
        with open_read(path) as handle:
            yield pq.ParquetFile(handle)
    except (pa.ArrowInvalid, OSError) as error:
        raise StaleDataError(f"a file of the reference cannot be read ({error}).", where=path,
                             hint="Write the reference again with `remember`.") from error


def rows_with_keys(path: str, keys: npt.NDArray[np.uint64]) -> Iterator[pa.Table]:
    """The rows of a table sorted by `key` whose key is one of `keys` (sorted), a row group at a time."""
    with _parquet(path) as file:
        column = file.schema_arrow.names.index("key")
        for group in range(file.num_row_groups):
            span = file.metadata.row_group(group).column(column).statistics
            if span is not None and span.has_min_max:
                first, last = np.searchsorted(keys, np.array([span.min, span.max], np.uint64))
                if first == last and (last == len(keys) or keys[last] != span.max):
                    continue
            table = file.read_row_group(group)
            own = table.column("key").to_numpy()
            place = np.minimum(np.searchsorted(keys, own), max(len(keys) - 1, 0))
            wanted = np.flatnonzero(keys[place] == own) if len(keys) else np.empty(0, np.int64)
            if len(wanted):
                yield table.take(pa.array(wanted))


def rows_at(path: str, rows: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
    """The rows with these numbers (sorted, each once) of a file; only the row groups that hold them are read."""
    with _parquet(path) as file:
        bounds = np.cumsum([0, *(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))])
        parts = [file.schema_arrow.empty_table().select(columns)]
        for group in np.unique(np.searchsorted(bounds, rows, "right") - 1).tolist():
            mine = rows[(rows >= bounds[group]) & (rows < bounds[group + 1])] - bounds[group]
            parts.append(file.read_row_group(group, columns=list(columns)).take(pa.array(mine)))
    return pa.concat_tables(parts).combine_chunks()
