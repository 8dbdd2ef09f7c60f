"""What the input files hold: the hash of each, and for files cut into parts the lines before each part.

To find that out, every file is read once: tasks for any engine, one for the files of each shard. A task's fingerprint
is what tells that a file may have changed (size, times), so a second look at unchanged files costs nothing. Where a
store has nothing of the kind to tell, files are read in every run.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xxhash

from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.storage import fingerprint, is_remote
from roots_pipeline.core.tasks import Commit, Engine, Task
from roots_pipeline.shards import Shard, work_path
from roots_pipeline.sources.base import ByteRange, FileSlice
from roots_pipeline.sources.files import check_unchanged, open_input, state_of

_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to be hashed. `places` are the offsets, ascending, before which line ends are counted.

    `state` is what the store says of it, `stamp` changes whenever it may have changed.
    """

    path: str
    places: tuple[int, ...]
    state: str | None
    stamp: str


def input_files(shards: Iterable[Shard]) -> dict[str, InputFile]:
    """The files of all shards as they are now, by path. Raises SourceError for one that is gone."""
    places: dict[str, list[int]] = {}
    for file in (file for shard in shards for file in shard.files):
        of_file = places.setdefault(file.path, [])
        if isinstance(file.part, ByteRange) and file.part.begin:
            of_file.append(file.part.begin - 1)
    found = {}
    for path, wanted in places.items():
        state = state_of(path)
        found[path] = InputFile(path, tuple(wanted), state, _stamp(path, state))
    return found


def hash_inputs(
    engine: Engine, shards: Sequence[Shard], files: dict[str, InputFile], folder: str
) -> tuple[list[Shard], dict[str, str]]:
    """The shards, with lines counted before their parts, and the content hash of every input file.

    Raises SourceError for a file that changes meanwhile.
    """
    left = dict(files)
    tasks = []
    for shard in shards:
        own = [left.pop(path) for path in dict.fromkeys(file.path for file in shard.files) if path in left]
        if own:
            mark = fingerprint([[file.path, file.places, file.stamp] for file in own])
            record = work_path(folder, "0-inputs", f"{shard.name}.json")
            tasks.append(Task(shard.name, record, mark, hash_files, {"files": own}))
    facts: dict[str, Any] = {}
    for result in engine.run(tasks, "hash inputs"):
        facts.update(result["files"])
    complete = [
        replace(shard, files=tuple(_completed(file, files[file.path], facts[file.path]) for file in shard.files))
        for shard in shards
    ]
    return complete, {path: facts[path]["xxh3"] for path in files}


def _completed(file: FileSlice, whole: InputFile, facts: dict[str, Any]) -> FileSlice:
    part = file.part
    if isinstance(part, ByteRange) and part.begin:
        part = replace(part, lines=facts["lines"][whole.places.index(part.begin - 1)])
    return replace(file, part=part, state=whole.state)


def hash_files(commit: Commit, *, files: Sequence[InputFile]) -> dict[str, Any]:
    """Task: hashes of files, and the line ends before their places."""
    found = {}
    for file in files:
        content, lines = hash_and_count(file.path, file.places)
        check_unchanged(FileSlice(file.path, 0, state=file.state))  # what was hashed is what the fingerprint speaks of
        found[file.path] = {"xxh3": content, "lines": lines}
    return {"files": found}


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


def _stamp(path: str, state: str | None) -> str:
    if is_remote(path):
        return state or uuid.uuid4().hex
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
