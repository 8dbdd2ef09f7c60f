"""The manifest: what a step read, how it was configured, and what it wrote.

Each step ends by writing `manifest.json` into its folder and begins by checking the manifest of the step before.
The manifest holds no times, so equal runs give equal bytes; when a run started and how long it took goes to
`history.jsonl` beside it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from roots_pipeline import __version__
from roots_pipeline.core.errors import StaleDataError, StorageError
from roots_pipeline.core.storage import is_remote, join, read_json, size_of, write_json

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """One finished step."""

    step: str
    fingerprint: str
    config: dict[str, Any]
    inputs: dict[str, Any]
    counts: dict[str, Any]
    seeds: dict[str, int] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: str = __version__
    format: int = _FORMAT


def write_manifest(
    folder: str,
    step: str,
    *,
    config: Mapping[str, Any],
    inputs: Mapping[str, Any],
    counts: Mapping[str, Any],
    fingerprint: str,
    seeds: Mapping[str, int] | None = None,
    files: Mapping[str, dict[str, Any]] | None = None,
) -> Manifest:
    """Commit `manifest.json`; nothing is rewritten if it already says the same. `files`: name -> size and hash."""
    manifest = Manifest(
        step, fingerprint, dict(config), dict(inputs), dict(counts), dict(seeds or {}), dict(files or {})
    )
    path = join(folder, "manifest.json")
    value = orjson.loads(orjson.dumps(asdict(manifest), option=orjson.OPT_NON_STR_KEYS))
    if _written(path) != value:
        write_json(path, value)
    return manifest


def _written(path: str) -> Any:
    try:
        return read_json(path)
    except (FileNotFoundError, StorageError):  # absent, or damaged: it is written anew
        return None


def read_manifest(folder: str, *, made_by: str | None = None) -> Manifest:
    """The manifest of a finished step; `made_by` is the command that the error message recommends.

    Raises StaleDataError if the step has not finished or was written by a newer version.
    """
    path = join(folder, "manifest.json")
    hint = f"Run `{made_by}` first." if made_by else "Run the step that writes it first."
    try:
        value = read_json(path)
    except FileNotFoundError as error:
        raise StaleDataError("there is no finished result here (no manifest.json).", where=folder, hint=hint) from error
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        found = value.get("format") if isinstance(value, dict) else type(value).__name__
        raise StaleDataError(
            f"the manifest has format {found}, this version reads format {_FORMAT}.", where=path,
            hint="Use the version of rootbloom that wrote it, or run the step again.",
        )
    try:
        return Manifest(**value)
    except TypeError as error:
        raise StaleDataError(
            f"the manifest does not have the keys it should ({error}).", where=path, hint="Run the step again."
        ) from error


def check_files(folder: str, manifest: Manifest) -> None:
    """Raise StaleDataError if a file that the manifest lists is missing or has another size."""
    for name, entry in manifest.files.items():
        size = size_of(join(folder, name))
        if size != entry["size"]:
            state = "is missing" if size is None else f"has {size} bytes instead of {entry['size']}"
            raise StaleDataError(f"{name} {state}.", where=folder, hint="Run the step that writes it again.")


def note_history(folder: str, started: float, **facts: Any) -> None:
    """Append when a run started, its seconds and some facts to `history.jsonl` (local folders only)."""
    if is_remote(folder):
        return
    line = {"started": round(started, 3), "seconds": round(max(0.0, time.time() - started), 3), **facts}
    with open(join(folder, "history.jsonl"), "ab") as out:
        out.write(orjson.dumps(line) + b"\n")
