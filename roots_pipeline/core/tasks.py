"""Tasks: the unit of work that every engine runs, and the record that makes a run resumable.

A task is a module-level function with plain arguments. It writes files only through `Commit.file`, and when it
returns, a record (JSON) is committed with its fingerprint, its files and its result. A task whose record is there,
carries the same fingerprint and whose files are still what was written is not run again: its old result is returned.
The record is written last, so a task killed anywhere is simply run again and overwrites its own files.

"What was written" means the size, and of small local files the hash. Reading large ones again would cost more than it
is worth: damage to them is noticed by whoever reads them (Parquet pages have checksums). A file that this process has
hashed before, and that has the same size, times and inode since, is not read again: plans are replayed many times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import xxhash

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import (
    commit_file,
    from_beside,
    hash_file,
    is_remote,
    read_json,
    remove_file,
    size_of,
    to_beside,
    write_json,
)

_HASHED_BYTES = 256 << 10
# Two changes of a file within a tick of its file system's clock bear the same time: only older files are remembered.
_OLD_NS = 2_000_000_000
_intact: set[bytes] = set()  # hashes of path, size, times, inode and content: 50 bytes a file


class Commit:
    """Collects the files of one task; `file(path)` yields the temporary path to write to."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}

    @contextmanager
    def file(self, path: str) -> Iterator[str]:
        """Write `path` atomically and note its size and hash in the task's record."""
        with commit_file(path) as temporary:
            yield temporary
            self.files[path] = {"size": size_of(temporary), "xxh3": hash_file(temporary)}


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work: `function(commit, **arguments)` returns a JSON-able dictionary.

    `fingerprint` must cover everything that decides the bytes of its files; `record` is where its record goes. `size`
    tells how much work it is beside others (bytes of input, say): an engine that begins with the large ones has no
    worker left with one at the end.
    """

    name: str
    record: str
    fingerprint: str
    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any] = field(default_factory=dict)
    size: int = 0


class Engine(Protocol):
    """Runs tasks that do not depend on each other and returns their results in order."""

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]: ...


def finished_result(task: Task) -> dict[str, Any] | None:
    """The recorded result if the task need not run again, else None."""
    try:
        record = read_json(task.record)
    except (FileNotFoundError, StorageError):
        return None
    if not isinstance(record, dict) or record.get("fingerprint") != task.fingerprint:
        return None
    if not isinstance(record.get("files"), dict) or not isinstance(record.get("result"), dict):
        return None  # not written by us
    if not all(_is_intact(from_beside(name, task.record), entry) for name, entry in record["files"].items()):
        return None
    result: dict[str, Any] = record["result"]
    return result


def _is_intact(path: str, entry: dict[str, Any]) -> bool:
    if is_remote(path):
        return bool(size_of(path) == entry["size"])
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return False
    if status.st_size != entry["size"] or status.st_size > _HASHED_BYTES:
        return bool(status.st_size == entry["size"])
    state = f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
    mark = xxhash.xxh3_128_digest(f"{path}\0{entry['size']} {state} {entry['xxh3']}")
    if mark not in _intact:
        if hash_file(path) != entry["xxh3"]:
            return False
        if abs(time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns)) > _OLD_NS:
            _intact.add(mark)
    return True


def run_task(task: Task) -> dict[str, Any]:
    """Run one task here and commit its record."""
    remove_file(task.record)  # a record of other files under the same names must not speak for what is written now
    commit = Commit()
    result = task.function(commit, **task.arguments)
    # Names are relative to the record, so that a run folder may be moved, copied, and named in another way.
    files = {to_beside(path, task.record): entry for path, entry in commit.files.items()}
    write_json(task.record, {"fingerprint": task.fingerprint, "files": files, "result": result})
    return result
