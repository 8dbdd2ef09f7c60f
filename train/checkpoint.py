"""Checkpoints that are whole or do not count.

DeepSpeed writes its files into a hidden folder; then every file's size and hash go into a manifest,
everything is flushed to disk, and the folder gets its final name in one rename. A process killed at any
moment therefore leaves either a complete checkpoint or a hidden folder that the next save clears away.

DeepSpeed's files are pickles. They are only read after their hashes have matched a manifest in the same
folder; that protects against damage, not against someone who can write there: use only checkpoints from
people you trust.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch.distributed as dist

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import hash_file, write_bytes, write_json
from train.parallel.backend import quiet_deepspeed
from train.parallel.topology import Place
from train.saved import FORMAT, PREFIX, Saved, check_continues, newest_complete

_HIDDEN = ".unfinished_"


class Checkpoints:
    """Saves and restores one run; all processes call its methods together."""

    def __init__(self, folder: Path, place: Place, identity: dict[str, Any], *, keep: int) -> None:
        self.folder, self._place, self._identity, self._keep = folder, place, identity, keep

    def save(self, engine: Any, step: int, samples: int) -> Path:
        """Write and commit the checkpoint of a finished step; returns its folder."""
        final, hidden = self.folder / f"{PREFIX}{step:08d}", self.folder / f"{_HIDDEN}{step:08d}"
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
                "format": FORMAT,
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
        for folder in sorted(self.folder.glob(f"{PREFIX}*"), reverse=True)[self._keep :]:
            doomed = folder.with_name(f"{_HIDDEN}{folder.name}")
            folder.rename(doomed)  # out of sight first: half of a deleted checkpoint is none
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
        check_continues(saved, self._identity, self._place.layout)
        with quiet_deepspeed():
            engine.load_checkpoint(str(saved.folder.parent), tag=saved.folder.name)
        say(f"Continuing after step {saved.step} ({saved.samples:,} samples) from {saved.folder.name}.")
        return saved.step, saved.samples
