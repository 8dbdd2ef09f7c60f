"""Checkpoints that are whole or do not count.

Each process copies its part to memory, and a thread writes it into a hidden folder while training goes on. When every
process has noted the size and hash of its files there, the leading one makes a manifest of them and gives the folder
its final name in one rename. A process killed at any moment therefore leaves either a complete checkpoint or a hidden
folder that the next save clears away. No process waits for another's disk except in the next save and at the end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

import torch.distributed as dist

from roots_pipeline.core.errors import RootbloomError, StorageError
from roots_pipeline.core.storage import read_json, write_bytes, write_json
from train.background import Files, write_files
from train.duplicates import check_duplicates
from train.health import check_space
from train.parallel.backend import quiet_deepspeed
from train.parallel.topology import Place
from train.reshard import describe_parameters, load_into
from train.saved import (
    HIDDEN,
    KEPT,
    PREFIX,
    SKIPPED,
    UNDONE,
    Saved,
    broken_because,
    check_continues,
    has_seen_skipped,
    newest_first,
    read_saved,
    skip_message,
    to_forget,
)

_POLL_SECONDS = 0.02


class Checkpoints:
    """Saves and restores one run; all processes call its methods together."""

    def __init__(
        self,
        folder: Path,
        place: Place,
        identity: dict[str, Any],
        *,
        keep: int,
        keep_every: int = 0,
        keep_hours: float = 0.0,
        background: bool = False,
        needed_bytes: int = 0,
    ) -> None:
        """`needed_bytes` must be free on the disk before a save begins."""
        self.folder, self._place, self._identity = folder, place, identity
        self._kept = {"keep": keep, "keep_every": keep_every, "keep_hours": keep_hours}
        self.needed_bytes = needed_bytes
        self._background, self._files = background, Files(copies=background)
        self._origin: str | None = None
        self._described: tuple[dict[str, Any], list[dict[str, Any]]] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._abandoned = Event()
        self._writing: Future[None] | None = None
        self._committing: Future[None] | None = None

    def save(self, engine: Any, step: int, samples: int) -> Path:
        """Write the checkpoint of a finished step, in the background if so configured; returns its folder.

        Raises StorageError in all processes if this one, or the one before in the background, could not be written,
        TrainingError if copies of a parameter have drifted apart.
        """
        self.wait()
        check_duplicates(engine.module, self._place)
        hidden, final = self.folder / f"{HIDDEN}{step:08d}", self.folder / f"{PREFIX}{step:08d}"
        self._prepare(hidden)
        self._collect(engine, hidden, step, samples)
        parameters, shards = self._describe(engine, hidden)
        saved = Saved(
            final,
            step,
            samples,
            self._place.layout,
            self._identity,
            asdict(engine.module.shape),
            parameters,
            shards,
            self._origin,
            round(time.time(), 3),
        )
        self._writing = self._thread.submit(self._write, self._files.take(), hidden)
        if self._place.leads:
            self._committing = self._thread.submit(self._commit, hidden, saved)
        if not self._background:
            self.wait()
        return final

    def _prepare(self, hidden: Path) -> None:
        """Clear away what is unfinished and make the folder, if there is room; raises StorageError everywhere."""
        problem: list[Any] = [None]
        if self._place.leads:
            for leftover in self.folder.glob(f"{HIDDEN}*"):
                shutil.rmtree(leftover)
            hidden.mkdir(parents=True)
            try:
                check_space(self.folder, self.needed_bytes)
            except StorageError as error:
                problem[0] = (error.message,), {"where": error.where, "hint": error.hint}
                hidden.rmdir()
        dist.broadcast_object_list(problem, src=0)
        if problem[0] is not None:
            raise StorageError(*problem[0][0], **problem[0][1])

    def keep_newest(self) -> None:
        """The newest complete checkpoint is never removed from now on."""
        self.wait()
        if self._place.leads and (folder := next(newest_first(self.folder), None)) is not None:
            (folder / KEPT).touch()

    def skip(self, ranges: list[list[int]]) -> None:
        """From now on the run passes over these samples; `restore` then goes back to before the first new one."""
        self.wait()
        self._identity = {**self._identity, SKIPPED: ranges}

    def _collect(self, engine: Any, hidden: Path, step: int, samples: int) -> None:
        info = engine.module.universal_checkpoint_info()
        state = {"step": step, "samples": samples, "universal_checkpoint_info": info}
        self._equip(engine)
        with quiet_deepspeed():
            engine.save_checkpoint(str(hidden.parent), tag=hidden.name, client_state=state, save_latest=False)

    def _equip(self, engine: Any) -> None:
        engine.checkpoint_engine = self._files
        engine._copy_recovery_script = lambda folder: None  # programs do not belong among data

    def _describe(self, engine: Any, hidden: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """All parameters and optimizer files of the run; they are the same in every save."""
        if self._described is None:
            place = self._place
            name = Path(engine._get_zero_ckpt_name(str(hidden.parent), hidden.name)).name
            shard = {"file": name, "data": place.data_rank, "tensor": place.tensor.rank, "stage": place.stage}
            everyone: list[Any] = [None] * place.layout.processes
            dist.all_gather_object(everyone, (describe_parameters(engine.module, place), shard))
            parameters = {name: entry for found, _ in everyone for name, entry in found.items()}
            self._described = parameters, [one for _, one in everyone]
        return self._described

    def _write(self, files: list[tuple[Any, Path]], hidden: Path) -> None:
        """In the thread of each process: its own files, then a note that they are safe."""
        written = write_files(files, hidden)
        write_json(str(hidden / _note(self._place.rank)), written)

    def _commit(self, hidden: Path, saved: Saved) -> None:
        """In the thread of the leading process: wait for all notes, then make the checkpoint visible."""
        files: dict[str, dict[str, Any]] = {}
        for rank in range(self._place.layout.processes):
            note = hidden / _note(rank)
            while not note.exists():
                if self._abandoned.wait(_POLL_SECONDS):
                    return
            files |= read_json(str(note))
            note.unlink()
        write_json(str(hidden / "manifest.json"), saved.manifest(files))
        if saved.folder.exists():  # broken, or it would have been loaded
            shutil.rmtree(saved.folder)
        hidden.rename(saved.folder)
        write_bytes(str(self.folder / "latest"), f"{saved.folder.name}\n".encode())  # also flushes the folder
        self._forget_old(saved.step)

    def _forget_old(self, step: int) -> None:
        complete = [
            read_saved(folder)[0] for folder in newest_first(self.folder) if not broken_because(folder, hashes=False)
        ]
        # What claims a later step is damaged, or it would have been continued: it must not push out what is whole.
        own = [one for one in complete if one.step <= step and not (one.folder / KEPT).exists()]
        for saved in to_forget(own, **self._kept):  # type: ignore[arg-type]
            doomed = saved.folder.with_name(f"{HIDDEN}{saved.folder.name}")
            saved.folder.rename(doomed)  # out of sight first: half of a deleted checkpoint is none
            shutil.rmtree(doomed)

    def wait(self) -> None:
        """Return when the last checkpoint is complete; raises StorageError in all processes if it cannot be."""
        if self._writing is None:
            return
        problems: list[Any] = [None] * self._place.layout.processes
        dist.all_gather_object(problems, _problem_of(self._writing))
        if any(problems):
            self._abandoned.set()
        elif self._committing is not None:
            problems[0] = _problem_of(self._committing)
        dist.broadcast_object_list(problems, src=0)
        self._writing = self._committing = None
        for problem in problems:
            if problem is not None:
                raise StorageError(*problem[0], **problem[1])

    def settle(self) -> None:
        """Let this process's thread finish, without asking the others: for leaving after an error."""
        self._thread.shutdown(wait=True)

    def restore(self, engine: Any, say: Callable[[str], None]) -> tuple[int, int]:
        """Continue from the newest complete checkpoint; returns (step, samples), zeros for a fresh start."""
        saved, undone = self._newest(say)
        if saved is None:
            return 0, 0
        check_continues(saved, self._identity)
        if self._place.leads:
            for folder in undone:
                aside = folder.with_name(f"{UNDONE}{folder.name}")
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)
                say(f"{folder.name} has seen samples that are now passed over; it is called {aside.name} now.")
        self._equip(engine)
        if saved.layout == self._place.layout:
            with quiet_deepspeed():
                engine.load_checkpoint(str(saved.folder.parent), tag=saved.folder.name)
            said = ""
        else:
            load_into(engine, self._place, saved)
            said = f", written in the layout {saved.layout}" if saved.layout else ""
        self._origin = saved.origin
        say(f"Continuing after step {saved.step} ({saved.samples:,} samples) from {saved.folder.name}{said}.")
        return saved.step, saved.samples

    def _newest(self, say: Callable[[str], None]) -> tuple[Saved | None, list[Path]]:
        """The newest complete checkpoint, and newer ones that have seen samples which are now passed over.

        The processes share the work of hashing its files. If all have seen such samples, the oldest is returned: it
        will be refused.
        """
        folders: list[Any] = [list(newest_first(self.folder)) if self._place.leads else None]
        dist.broadcast_object_list(folders, src=0)
        place = self._place
        undone: list[Path] = []
        saved = None
        for folder in folders[0]:
            reasons: list[str | None] = [None] * place.layout.processes
            dist.all_gather_object(reasons, broken_because(folder, share=(place.rank, place.layout.processes)))
            reason = next((one for one in reasons if one is not None), None)
            if reason is not None:
                say(skip_message(folder, reason))
                continue
            saved = read_saved(folder)[0]
            if not has_seen_skipped(saved, self._identity):
                return saved, undone
            undone.append(folder)
        return saved, []


def _note(rank: int) -> str:
    return f".written_{rank:05d}.json"


def _problem_of(work: Future[None]) -> Any:
    """What went wrong in a thread, in a form that can be sent to other processes."""
    error = work.exception()
    if error is None:
        return None
    if isinstance(error, RootbloomError):
        return (error.message,), {"where": error.where, "hint": error.hint}
    if isinstance(error, OSError):
        return (f"the checkpoint could not be completed ({error}).",), {"where": str(error.filename)}
    raise error
