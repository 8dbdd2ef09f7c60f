"""How the files of a checkpoint are written and read: copied first, written by a thread, read without running code.

DeepSpeed lets its files be handled by a class of one's own. This one copies the tensors to memory, which is all that
training waits for, and hands the writing to a thread. Its own asynchronous engines are not used: they need a compiled
operator or a further process, and neither knows when a checkpoint of several processes is whole.

Reading allows tensors, plain containers, and the three harmless classes that DeepSpeed stores. A file that holds
anything else is refused instead of run, as Python's pickles otherwise would be.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import hash_file
from train.parallel.backend import STORED_CLASSES, TorchCheckpointEngine


class Files(TorchCheckpointEngine):  # type: ignore[misc]
    """Collects what DeepSpeed wants to save; `take` hands it over for writing."""

    def __init__(self, *, copies: bool) -> None:
        super().__init__(None)
        self._copies, self._waiting = copies, list[tuple[Any, Path]]()

    def save(self, state_dict: Any, path: str) -> None:
        """Note one file; with `copies` the tensors may change as soon as this returns."""
        self._waiting.append((in_memory(state_dict) if self._copies else state_dict, Path(path)))

    def load(self, path: str, map_location: Any = None) -> Any:
        """Read one file; see `read_tensors`."""
        return read_tensors(Path(path), lazily=False)  # DeepSpeed keeps what it gets

    def preserves_storage_sharing(self) -> bool:
        """Whether a part of a larger tensor must be cut out before `save`, which copying does anyway."""
        return not self._copies

    def take(self) -> list[tuple[Any, Path]]:
        """The contents and paths noted since the last call."""
        taken, self._waiting = self._waiting, []
        return taken


def in_memory(value: Any) -> Any:
    """The same structure with every tensor copied to memory of its own."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: in_memory(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(in_memory(inner) for inner in value)
    return value


def write_files(files: list[tuple[Any, Path]], folder: Path) -> dict[str, dict[str, Any]]:
    """Write all files and bring them safely to disk; returns size and hash by the name inside `folder`.

    Raises StorageError if they cannot be written.
    """
    written = {}
    try:
        for value, path in files:
            torch.save(value, path)
            _flush(path)
            written[str(path.relative_to(folder))] = {"size": path.stat().st_size, "xxh3": hash_file(str(path))}
        _flush(folder)
    except (RuntimeError, OSError) as error:  # RuntimeError is what torch.save makes of a full disk
        raise StorageError(
            f"the checkpoint could not be written ({error}).",
            where=str(folder.parent),
            hint="Check the free space and run the same command again; older checkpoints are kept.",
        ) from error
    return written


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_tensors(path: Path, *, lazily: bool) -> Any:
    """The content of a file; `lazily`: tensors are read from disk when they are used, so the file must stay.

    Raises StorageError for a file that is damaged or would run code.
    """
    try:
        with torch.serialization.safe_globals(STORED_CLASSES):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=lazily)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise StorageError(
            f"this is no file of a checkpoint ({str(error).splitlines()[0]}).",
            where=str(path),
            hint="Use only checkpoints that this program wrote.",
        ) from error
