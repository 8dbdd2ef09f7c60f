"""Checkpoints that are whole or do not count.
 DeepSpeed writes its files into a hidden folder; then every file's size and hash go into a manifest,
everything is flushed to disk, and the folder gets its final name in one rename. A process killed at any
moment therefore leaves either a complete checkpoint or a hidden folder that the next save clears away. On
loading, the newest folder whose files match its manifest is taken; anything else is skipped with a message.
 DeepSpeed's files are pickles. They are only read after their hashes have matched a manifest in the same
folder; that protects against damage, not against someone who can write there: use only checkpoints from
people you trust.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import torch.distributed as dist

from roots_pipeline.core.errors import RootbloomError, StaleDataError, StorageError, TrainingError
from roots_pipeline.core.storage import hash_file, read_json, write_bytes, write_json
from train.parallel.backend import quiet_deepspeed
from train.parallel.layout import Layout
from train.parallel.topology import Place

_FORMAT = 1
_PREFIX, _HIDDEN = "step_", ".unfinished_"


@dataclass(frozen=True, slots=True)
class Saved:
    """A complete checkpoint and how far the run had come."""

    folder: Path
    step: int
    samples: int
    layout: Layout
    identity: dict[str, Any]
    shape: dict[str, Any]


def broken_because(folder: Path) -> str | None:
    """Why a checkpoint folder cannot be used, or None if all its files are as its manifest says."""
    try:
        manifest = read_json(str(folder / "manifest.json"))
    except FileNotFoundError:
        return "it has no manifest"
    except RootbloomError as error:
        return f"its manifest cannot be read ({error.message})"
    if manifest.get("format") != _FORMAT:
        return f"its manifest has format {manifest.get('format')}, this version reads {_FORMAT}"
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if (size := path.stat().st_size) != entry["size"]:
            return f"{name} has {size} bytes instead of {entry['size']}"
        if hash_file(str(path)) != entry["xxh3"]:
            return f"the content of {name} has changed"
    return None


def newest_complete(checkpoints: Path, skipped: Callable[[str], None]) -> Saved | None:
    """The newest usable checkpoint below a folder; `skipped` is told about newer ones that are broken."""
    for folder in sorted(checkpoints.glob(f"{_PREFIX}*"), reverse=True):
        if (reason := broken_because(folder)) is not None:
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


class Checkpoints:
    """Saves and restores one run; all processes call its methods together."""

    def __init__(self, folder: Path, place: Place, identity: dict[str, Any], *, keep: int) -> None:
        self.folder, self._place, self._identity, self._keep = folder, place, identity, keep

    def save(self, engine: Any, step: int, samples: int) -> Path:
        """Write and commit the checkpoint of a finished step; returns its folder."""
        final, hidden = self.folder / f"{_PREFIX}{step:08d}", self.folder / f"{_HIDDEN}{step:08d}"
        if self._place.leads:
            self.folder.mkdir(parents=True, exist_ok=True)
            for leftover in self.folder.glob(f"{_HIDDEN}*"):
                shutil.rmtree(leftover)
        dist.barrier()
        model = engine.module
        state = {
            "step": step,
            "samples": samples,
            "universal_checkpoint_info": model.universal_checkpoint_info(),
        }
        self._write(engine, hidden, state)
        files = self._flush_and_hash(hidden)
        if self._place.leads:
            manifest = {
                "format": _FORMAT,
                "step": step,
                "samples": samples,
                "layout": asdict(self._place.layout),
                "identity": self._identity,
                "shape": asdict(model.shape),
                "files": files,
            }
            write_json(str(hidden / "manifest.json"), manifest)
            if final.exists():  # broken, or it would have been loaded
                shutil.rmtree(final)
            hidden.rename(final)
            write_bytes(str(self.folder / "latest"), f"{final.name}\n".encode())  # also flushes the folder
            self._forget_old()
        dist.barrier()
        return final

    def _write(self, engine: Any, hidden: Path, state: dict[str, Any]) -> None:
        try:
            with quiet_deepspeed():
                engine.save_checkpoint(str(hidden.parent), tag=hidden.name, client_state=state, save_latest=False)
        except RuntimeError as error:  # what torch.save makes of a full disk
            raise StorageError(
                f"the checkpoint could not be written ({error}).",
                where=str(hidden.parent),
                hint="Check the free space and run the same command again; older checkpoints are kept.",
            ) from error

    def _flush_and_hash(self, folder: Path) -> dict[str, dict[str, Any]]:
        """Size and hash of every file, the work shared by all processes."""
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        mine = {}
        for name in names[self._place.rank :: self._place.layout.processes]:
            path = folder / name
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
            mine[name] = {"size": path.stat().st_size, "xxh3": hash_file(str(path))}
        parts: list[Any] = [None] * self._place.layout.processes
        dist.all_gather_object(parts, mine)
        return {name: entry for part in parts for name, entry in part.items()}

    def _forget_old(self) -> None:
        for folder in sorted(self.folder.glob(f"{_PREFIX}*"), reverse=True)[self._keep :]:
            doomed = folder.with_name(f"{_HIDDEN}{folder.name}")  # out of sight first: half deleted is not a checkpoint
            folder.rename(doomed)
            shutil.rmtree(doomed)

    def restore(self, engine: Any, say: Callable[[str], None]) -> tuple[int, int]:
        """Continue from the newest complete checkpoint; returns (step, samples), zeros for a fresh start."""
        found: list[Saved | None] = [None]
        if self._place.leads:
            found = [newest_complete(self.folder, say)]
        dist.broadcast_object_list(found, src=0)
        saved = found[0]
        if saved is None:
            return 0, 0
        check_same_run(saved, self._identity)
        if saved.layout != self._place.layout:
            raise TrainingError(
                f"the checkpoint was written in the layout {saved.layout}, this run has {self._place.layout}.",
                where=str(saved.folder),
                hint="Continue with the same --processes, train.tensor_parallel and train.pipeline_parallel.",
            )
        with quiet_deepspeed():
            engine.load_checkpoint(str(saved.folder.parent), tag=saved.folder.name)
        say(f"Continuing after step {saved.step} ({saved.samples:,} samples) from {saved.folder.name}.")
        return saved.step, saved.samples


def check_same_run(saved: Saved, identity: dict[str, Any]) -> None:
    """Raise StaleDataError if a checkpoint belongs to a run with other settings or other data."""
    wanted = orjson.loads(orjson.dumps(identity))
    for key in wanted.keys() | saved.identity.keys():
        before, now = saved.identity.get(key), wanted.get(key)
        if before != now:
            raise StaleDataError(
                f"the checkpoints here belong to another run: {key} was {before}, now it is {now}.",
                where=str(saved.folder.parent),
                hint="Choose another --run, or remove this folder to start over.",
            )
