"""Is a file still what was written? A damaged file can keep its size, so contents are compared by hash.

Used where a file of an earlier step is about to be read, and where an old result is about to be used again.
"""

from __future__ import annotations

from typing import Any

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.storage import from_beside, hash_file, read_json, remove_file
from roots_pipeline.core.tasks import Task, finished_result

REMAKE_DOCUMENTS = "Delete the file and run `python -m roots_pipeline run` again."
REMAKE_TOKENIZER = "Run `python -m tokenizer train` again."


def check_content(path: str, wanted: str, hint: str) -> None:
    """Raise StaleDataError with `hint` if the xxh3-128 of a file is not `wanted`, the one of its manifest."""
    try:
        found = hash_file(path)
    except FileNotFoundError as error:
        raise StaleDataError("the file is missing.", where=path, hint=hint) from error
    if found != wanted:
        raise StaleDataError(
            f"its content is not what the manifest describes ({found[:12]} instead of {wanted[:12]}).",
            where=path, hint=hint,
        )  # fmt: skip


def whole_result(task: Task) -> dict[str, Any] | None:
    """`finished_result`, but a task whose files have other contents than recorded is forgotten: it runs again."""
    result = finished_result(task)
    if result is None:
        return None
    files = read_json(task.record)["files"]
    if any(hash_file(from_beside(name, task.record)) != facts["xxh3"] for name, facts in files.items()):
        remove_file(task.record)
        return None
    return result
