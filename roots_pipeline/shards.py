"""Shards: the input files of each source, packed in order until a shard holds about `shard_size` bytes.

What a shard is depends only on the recipe and on the names and sizes of the files, never on workers. The content of
every input file is hashed; hashes are remembered by size and times, so that a second look costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from roots_pipeline.config import CorpusRecipe, SourceEntry
from roots_pipeline.core.errors import SourceError, StorageError
from roots_pipeline.core.storage import hash_file, is_remote, join, read_json, write_json
from roots_pipeline.sources import files_of
from roots_pipeline.sources.base import FileSlice


@dataclass(frozen=True, slots=True)
class Shard:
    """Some files of one source. `number` counts over the whole run and is what findings refer to."""

    number: int
    name: str
    source: SourceEntry
    files: tuple[FileSlice, ...]

    @property
    def size(self) -> int:
        """Bytes of its input files."""
        return sum(file.size for file in self.files)


def plan_shards(recipe: CorpusRecipe) -> list[Shard]:
    """All shards of a recipe, in order. Raises SourceError for a source without files."""
    shards: list[Shard] = []
    for source in recipe.sources:
        found = [file for file in files_of(source.reader, source.path) if source.wants(file.path)]
        if not found:
            raise SourceError(
                f"source '{source.name}' has no files left after `exclude`.", where=source.path,
                hint="Check the patterns of `exclude`.",
            )
        for index, files in enumerate(_pack(found, recipe.shard_bytes)):
            shards.append(Shard(len(shards), f"{source.name}-{index:05d}", source, files))
    return shards


def _pack(files: list[FileSlice], size: int) -> Iterator[tuple[FileSlice, ...]]:
    pack: list[FileSlice] = []
    held = 0
    for file in files:
        if pack and held + file.size > size:
            yield tuple(pack)
            pack, held = [], 0
        pack.append(file)
        held += file.size
    if pack:
        yield tuple(pack)


def hash_inputs(shards: list[Shard], memory: str) -> dict[str, str]:
    """Content hash of every input file; `memory` is the JSON file that remembers them."""
    known = _remembered(memory)
    hashes: dict[str, str] = {}
    remembered: dict[str, list[str]] = {}
    for shard in shards:
        for file in shard.files:
            stamp = _stamp(file)
            old = known.get(file.path)
            hashes[file.path] = old[1] if stamp and old and old[0] == stamp else hash_file(file.path)
            if stamp:
                remembered[file.path] = [stamp, hashes[file.path]]
    if remembered != known:
        write_json(memory, remembered)
    return hashes


def _remembered(memory: str) -> dict[str, list[str]]:
    try:
        value = read_json(memory)
    except (FileNotFoundError, StorageError):
        return {}
    return value if isinstance(value, dict) else {}


def _stamp(file: FileSlice) -> str | None:
    """Changes whenever a local file may have changed; None where there is no such thing."""
    if is_remote(file.path):
        return None
    status = os.stat(file.path)
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def work_path(folder: str, step: str, name: str) -> str:
    """Where intermediate files of a step live."""
    return join(folder, ".work", step, name)
