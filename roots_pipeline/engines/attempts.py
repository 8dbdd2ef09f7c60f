"""Doing a task far from the process that planned it: packing, checking the worker's code, and keeping errors.

An error that a user can mend must reach the person who started the job as one sentence, not as the traceback of some
cluster. So a worker writes it beside the record of its task (`<record>.failed`, JSON), and the driver, which finds
the task undone, raises it. Any other error is raised in the worker: the runner may try again.

Packed plans and tasks are pickles. They are made and read by ourselves within one job and never stored.
"""

from __future__ import annotations

import pickle
import socket
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import xxhash

from roots_pipeline.core import errors
from roots_pipeline.core.errors import EngineError, RootbloomError, StorageError
from roots_pipeline.core.storage import explain_os_error, read_json, remove_file, write_json
from roots_pipeline.core.tasks import Task, finished_result, run_task

_PACKAGES = ("roots_pipeline", "tokenizer", "mixtures")
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt at a plan. `number` is unique, so that errors of an earlier attempt are not taken for its own."""

    number: str
    code: str


def pack(value: Any) -> bytes:
    """A plan or task as bytes; lists of paths become small."""
    return zlib.compress(pickle.dumps(value), _LEVEL)


def unpack(data: bytes) -> Any:
    """What `pack` packed."""
    return pickle.loads(zlib.decompress(data))


@cache
def code_mark() -> str:
    """Hash of our packages as they are installed here."""
    digest = xxhash.xxh3_128()
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        root = Path(spec.origin).parent
        for path in sorted(root.rglob("*.py")):
            if "sample" not in path.relative_to(root).parts:
                digest.update(f"{path.relative_to(root)}\n")
                digest.update(path.read_bytes())
    return digest.hexdigest()


def attempt(task: Task, job: Job) -> RootbloomError | None:
    """Do a task unless it is done. Returns, and keeps for the driver, an error that a user must mend."""
    if finished_result(task) is not None:
        return None
    try:
        _check_code(job)
        run_task(task)
    except RootbloomError as error:
        return _keep(error, task, job)
    except OSError as error:
        sentence = explain_os_error(error)
        if sentence is None:
            raise
        return _keep(sentence, task, job)
    return None


def _check_code(job: Job) -> None:
    if code_mark() != job.code:
        raise EngineError(
            "this worker has other code than the machine that started the job.", where=socket.gethostname(),
            hint="Install the same version of rootbloom on all of them; in a notebook or service, start it anew.",
        )


def _notes(task: Task) -> str:
    return f"{task.record}.failed"


def _keep(error: RootbloomError, task: Task, job: Job) -> RootbloomError:
    write_json(_notes(task), {
        "job": job.number, "kind": type(error).__name__, "message": error.message, "where": error.where,
        "hint": error.hint,
    })
    return error


def kept_error(tasks: Sequence[Task], job: Job) -> RootbloomError | None:
    """The error of the first of these tasks that failed in this job; notes of other jobs are removed, too."""
    found: RootbloomError | None = None
    for task in tasks:
        try:
            note = read_json(_notes(task))
        except (FileNotFoundError, StorageError):
            continue
        remove_file(_notes(task))
        kind = getattr(errors, str(note["kind"]))
        if found is None and note["job"] == job.number and issubclass(kind, RootbloomError):
            found = kind(note["message"], where=note["where"], hint=note["hint"])
    return found
