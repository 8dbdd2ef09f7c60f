"""Shards: the input files of each source, packed in order until a shard holds about `shard_size` bytes.

With `auto` that is a 64th of the inputs, so that many workers find work, but no less than 200 kB, since each task costs
some milliseconds, and no more than 12.8 MB, since memory grows with the keys of a shard. It changes by steps of two:
inputs that grow a little leave it, and thereby finished work, as it was.

A file that is larger than two shards is cut into parts, if its reader can read parts. What a shard is depends only on
the recipe, on the names and sizes of the files, on the footers of large Parquet files and the first bytes of other
large ones, never on workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from roots_pipeline.config import CorpusRecipe, SourceEntry
from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.storage import join
from roots_pipeline.sources import files_of, read_files
from roots_pipeline.sources.base import FileSlice, Part, Quarantined, Reader, RowGroups
from roots_pipeline.sources.parts import Splittable

# A task for less than this would cost more than it does.
_LEAST_PART = 1 << 20
_SMALLEST, _LARGEST, _MANY = 200_000, 12_800_000, 64  # of automatic sizes, and how many shards are wanted


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
    found = [(source, _files_of(source)) for source in recipe.sources]
    size = recipe.shard_bytes or automatic_size(sum(file.size for _, files in found for file in files))
    shards: list[Shard] = []
    for source, files in found:
        packs = _pack([part for file in files for part in _cut(source.reader, file, size)], size)
        for index, (pack, limit) in enumerate(_limited(source.reader, packs, source.limit)):
            shards.append(Shard(len(shards), f"{source.name}-{index:05d}", source, pack, limit))
    return shards


def automatic_size(inputs: int) -> int:
    """Bytes of a shard where the inputs have so many."""
    size = _SMALLEST
    while size < _LARGEST and size * _MANY < inputs:
        size *= 2
    return size


def _files_of(source: SourceEntry) -> list[FileSlice]:
    found = [file for file in files_of(source.reader, source.path) if source.wants(file.path)]
    if not found:
        raise SourceError(
            f"source '{source.name}' has no files left after `exclude`.", where=source.path,
            hint="Check the patterns of `exclude`.",
        )
    return found


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


def work_path(folder: str, step: str, name: str) -> str:
    """Where intermediate files of a step live."""
    return join(folder, ".work", step, name)
