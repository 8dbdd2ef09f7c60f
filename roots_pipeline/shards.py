"""Shards: the input files of each source, packed in order until a shard holds about `shard_size` bytes.

A file that is larger than two shards is cut into parts, if its reader can read parts. What a shard is depends only on
the recipe, on the names and sizes of the files, on the footers of large Parquet files and the first bytes of other
large ones, never on workers. The content of every input file is hashed; hashes are remembered by size and times, so
that a second look costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xxhash

from roots_pipeline.config import CorpusRecipe, SourceEntry
from roots_pipeline.core.errors import SourceError, StorageError
from roots_pipeline.core.storage import is_remote, join, read_json, write_json
from roots_pipeline.sources import files_of, read_files
from roots_pipeline.sources.base import ByteRange, FileSlice, Part, Quarantined, Reader, RowGroups
from roots_pipeline.sources.files import open_input, state_of
from roots_pipeline.sources.parts import Splittable

_READ = 1 << 20
# A task for less than this would cost more than it does.
_LEAST_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class Shard:
    """Some files of one source. `number` counts over the whole run and is what findings refer to.

    `limit`: no more documents than this are taken from it.
    """

    number: int
    name: str
    source: SourceEntry
    files: tuple[FileSlice, ...]
    limit: int | None = None

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
        parts = [part for file in found for part in _cut(source.reader, file, recipe.shard_bytes)]
        packs = _pack(parts, recipe.shard_bytes)
        for index, (files, limit) in enumerate(_limited(source.reader, packs, source.limit)):
            shards.append(Shard(len(shards), f"{source.name}-{index:05d}", source, files, limit))
    return shards


def _limited(
    reader: Reader, packs: Iterable[tuple[FileSlice, ...]], limit: int | None
) -> Iterator[tuple[tuple[FileSlice, ...], int | None]]:
    """The packs that hold the first `limit` documents, which are read for that, and how many each may give."""
    left = limit
    for files in packs:
        yield files, left
        if left is not None:
            for item in read_files(reader, files):
                left -= 0 if isinstance(item, Quarantined) else item.num_rows
                if left <= 0:
                    return


def _cut(reader: Reader, file: FileSlice, shard_bytes: int) -> list[FileSlice]:
    """The parts of a file that is to be cut, else the file."""
    wanted = file.size // max(shard_bytes, _LEAST_PART)
    parts = reader.parts(file.path, file.size, wanted) if wanted > 1 and isinstance(reader, Splittable) else []
    return [FileSlice(file.path, _bytes_of(part), part) for part in parts] if len(parts) > 1 else [file]


def _bytes_of(part: Part) -> int:
    return part.bytes if isinstance(part, RowGroups) else part.end - part.begin


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


def hash_inputs(shards: Sequence[Shard], memory: str, *, looking: bool = False) -> tuple[list[Shard], dict[str, str]]:
    """The shards, with lines counted before their parts, and the content hash of every input file.

    `memory` is the JSON file that remembers both. `looking`: read no file and write nothing; the hash of a file that
    is not remembered is empty.
    """
    places: dict[str, list[int]] = {}
    for file in (file for shard in shards for file in shard.files):
        of_file = places.setdefault(file.path, [])
        if isinstance(file.part, ByteRange) and file.part.begin:
            of_file.append(file.part.begin - 1)
    known = _remembered(memory)
    facts: dict[str, dict[str, Any]] = {}
    states = {path: state_of(path) for path in places}
    for path, wanted in places.items():
        stamp, old = _stamp(path, states[path]), known.get(path)
        if stamp and old and old["stamp"] == stamp and old["places"] == wanted:
            facts[path] = old
        else:
            content, lines = ("", [0] * len(wanted)) if looking else hash_and_count(path, wanted)
            facts[path] = {"stamp": stamp, "xxh3": content, "places": wanted, "lines": lines}
    remembered = {path: entry for path, entry in facts.items() if entry["stamp"]}
    if remembered != known and not looking:
        write_json(memory, remembered)
    complete = [replace(shard, files=tuple(_completed(file, states[file.path], facts[file.path])
                                           for file in shard.files)) for shard in shards]
    return complete, {path: entry["xxh3"] for path, entry in facts.items()}


def _completed(file: FileSlice, state: str | None, facts: dict[str, Any]) -> FileSlice:
    part = file.part
    if isinstance(part, ByteRange) and part.begin:
        part = replace(part, lines=facts["lines"][facts["places"].index(part.begin - 1)])
    return replace(file, part=part, state=state)


def hash_and_count(path: str, places: Sequence[int]) -> tuple[str, list[int]]:
    """xxh3-128 of a file's bytes, and how many line ends there are before each of some places, which ascend."""
    digest = xxhash.xxh3_128()
    counts: list[int] = []
    at = lines = 0
    with open_input(path) as handle:
        while block := handle.read(_READ):
            digest.update(block)
            if len(counts) < len(places):
                begin = 0
                while len(counts) < len(places) and places[len(counts)] <= at + len(block):
                    end = places[len(counts)] - at
                    lines += block.count(b"\n", begin, end)
                    counts.append(lines)
                    begin = end
                lines += block.count(b"\n", begin)
            at += len(block)
    if len(counts) < len(places):
        raise SourceError("this file became shorter while it was read.", where=path,
                          hint="Run the same command again when nobody writes to it.")
    return digest.hexdigest(), counts


def _remembered(memory: str) -> dict[str, dict[str, Any]]:
    try:
        value = read_json(memory)
    except (FileNotFoundError, StorageError):
        return {}
    well_formed = isinstance(value, dict) and all(
        isinstance(entry, dict) and entry.keys() == {"stamp", "xxh3", "places", "lines"} for entry in value.values())
    return value if well_formed else {}


def _stamp(path: str, state: str | None) -> str | None:
    """Changes whenever a file may have changed; None where there is no such thing."""
    if is_remote(path):
        return state
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def work_path(folder: str, step: str, name: str) -> str:
    """Where intermediate files of a step live."""
    return join(folder, ".work", step, name)
