"""The beginnings of some files of every source, as a small recipe of its own: what `plan` runs to predict a run.

Files are taken at even distances, and of large ones the first bytes: readers give the good part of a file that is cut
short. Parquet files are written anew with some of their rows. Sources whose reader finds its own files (Hugging Face
datasets) are limited to some documents instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.config import CorpusRecipe, SourceEntry
from roots_pipeline.shards import Shard
from roots_pipeline.sources.arrow_columns import UNREADABLE
from roots_pipeline.sources.base import FileSlice
from roots_pipeline.sources.files import open_input

_PLACES = 8
_WHOLE = ("html", "code")  # a page or a source file that is cut is another one
_OWN_FILES = ("hf", "datatrove")
_DOCUMENTS = 500


@dataclass(frozen=True, slots=True)
class Sample:
    """A recipe on copies, and how many bytes of the input they stand for: of each source, and in all."""

    recipe: CorpusRecipe
    bytes_of: dict[str, int]

    @property
    def bytes(self) -> int:
        """In all."""
        return sum(self.bytes_of.values())


def write_sample(recipe: CorpusRecipe, shards: Sequence[Shard], wanted: int, folder: Path) -> Sample:
    """Copy about `wanted` bytes, the same share of every source, below `folder`."""
    total = max(1, sum(shard.size for shard in shards))
    sources: list[SourceEntry] = []
    bytes_of: dict[str, int] = {}
    for entry in recipe.sources:
        files = _files(shards, entry.name)
        if entry.kind in _OWN_FILES:
            limit = min(entry.limit or _DOCUMENTS, _DOCUMENTS)
            sources.append(entry.model_copy(update={"limit": limit}))
            bytes_of[entry.name] = 0
            continue
        share = max(1, wanted * sum(file.size for file in files) // total)
        place = folder / entry.name
        place.mkdir(parents=True)
        bytes_of[entry.name] = _copy(entry.kind, files, share, place)
        settings = {**entry.model_dump(), **(entry.model_extra or {}), "path": str(place), "exclude": [], "limit": None}
        sources.append(SourceEntry.model_validate(settings))
    changes = {"sources": sources, "maximum_bad_share": 1.0, "allow_empty": True}
    return Sample(recipe.model_copy(update=changes), bytes_of)


def _files(shards: Sequence[Shard], name: str) -> list[FileSlice]:
    """The files of a source, whole."""
    sizes: dict[str, int] = {}
    for file in (file for shard in shards if shard.source.name == name for file in shard.files):
        sizes[file.path] = sizes.get(file.path, 0) + file.size
    return [FileSlice(path, size) for path, size in sizes.items()]


def _copy(kind: str, files: Sequence[FileSlice], wanted: int, place: Path) -> int:
    """Copy the beginnings of some files; returns the bytes of them."""
    mean = max(1, sum(file.size for file in files) // len(files))
    number = min(len(files), max(_PLACES, -(-wanted // mean)))
    if kind in _WHOLE:
        number = min(len(files), max(1, -(-wanted // mean)))
    chosen = [files[place * len(files) // number] for place in range(number)]
    done = 0
    for order, file in enumerate(chosen):
        target = place / f"{order:06d}"
        target.mkdir()
        copied = target / file.path.rsplit("/", 1)[-1]  # by its name a language may be told
        part = max(1, wanted // number)
        if kind == "parquet":
            done += _copy_rows(file, part, copied)
        else:
            limit = file.size if kind in _WHOLE or file.size < 2 * part else part
            with open_input(file.path) as handle:
                data = handle.read(limit)
            copied.write_bytes(data)
            done += len(data)
    return done


def _copy_rows(file: FileSlice, wanted: int, target: Path) -> int:
    """Some rows of a Parquet file that take about `wanted` bytes there; returns these bytes."""
    with open_input(file.path) as handle:
        try:
            whole = pq.ParquetFile(handle)
            rows = whole.metadata.num_rows
            part = max(1, min(rows, rows * wanted // max(1, file.size)))
            batch = next(whole.iter_batches(batch_size=part), None)
        except UNREADABLE:
            target.write_bytes(b"")  # the run will say what is wrong with it
            return 0
    table = pa.Table.from_batches([batch] if batch is not None else [], whole.schema_arrow)
    pq.write_table(table, target)
    return file.size * int(table.num_rows) // max(1, int(rows))
