"""Saved checkpoints seen from outside: which one is whole, and may this run continue from it?

Each checkpoint is a folder `step_...` with a manifest of sizes and hashes (written by `train.checkpoint`). The newest
whose files match it is used; anything else is skipped with a message. No PyTorch needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from roots_pipeline.core.errors import RootbloomError, StaleDataError, TrainingError
from roots_pipeline.core.storage import hash_file, read_json
from train.parallel.layout import Layout

FORMAT = 1
PREFIX = "step_"


@dataclass(frozen=True, slots=True)
class Saved:
    """A complete checkpoint and how far the run had come."""

    folder: Path
    step: int
    samples: int
    layout: Layout
    identity: dict[str, Any]
    shape: dict[str, Any]


def broken_because(folder: Path, *, hashes: bool = True) -> str | None:
    """Why a checkpoint folder cannot be used, or None if all its files are as its manifest says.

    Without `hashes` only names and sizes are compared.
    """
    try:
        manifest = read_json(str(folder / "manifest.json"))
    except FileNotFoundError:
        return "it has no manifest"
    except RootbloomError as error:
        return f"its manifest cannot be read ({error.message})"
    if manifest.get("format") != FORMAT:
        return f"its manifest has format {manifest.get('format')}, this version reads {FORMAT}"
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if (size := path.stat().st_size) != entry["size"]:
            return f"{name} has {size} bytes instead of {entry['size']}"
        if hashes and hash_file(str(path)) != entry["xxh3"]:
            return f"the content of {name} has changed"
    return None


def newest_complete(checkpoints: Path, skipped: Callable[[str], None], *, hashes: bool = True) -> Saved | None:
    """The newest usable checkpoint below a folder; `skipped` is told about newer ones that are broken."""
    for folder in sorted(checkpoints.glob(f"{PREFIX}*"), reverse=True):
        if (reason := broken_because(folder, hashes=hashes)) is not None:
            skipped(f"Skipping checkpoint {folder.name}: {reason}.")
            continue
        manifest = read_json(str(folder / "manifest.json"))
        return Saved(
            folder,
            manifest["step"],
            manifest["samples"],
            Layout(**manifest["layout"]),
            manifest["identity"],
            manifest["shape"],
        )
    return None


def check_continues(saved: Saved, identity: dict[str, Any], layout: Layout) -> None:
    """Whether a run with these settings, data and layout may go on from a checkpoint.

    Raises StaleDataError if it belongs to another run, TrainingError if its files are cut for another layout.
    """
    wanted = orjson.loads(orjson.dumps(identity))
    for key in wanted.keys() | saved.identity.keys():
        before, now = saved.identity.get(key), wanted.get(key)
        if before != now:
            raise StaleDataError(
                f"the checkpoints here belong to another run: {key} was {before}, now it is {now}.",
                where=str(saved.folder.parent),
                hint="Choose another --run, or remove this folder to start over.",
            )
    if saved.layout != layout:
        raise TrainingError(
            f"the checkpoint was written in the layout {saved.layout}, this run has {layout}.",
            where=str(saved.folder),
            hint="Continue with the same --processes, train.tensor_parallel and train.pipeline_parallel.",
        )
