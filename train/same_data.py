"""A run reads one mixture from its first sample to its last: what it was is kept beside the model.

RUN/model/mixture.lock.yaml is a copy of the lock that the run was started with, so that a run which must not go on can
say what is different, and not only that something is.
"""

from __future__ import annotations

from pathlib import Path

from mixtures.lock import NAME, Lock, differences, read_lock, write_lock
from roots_pipeline.core.errors import StaleDataError

_SHOWN = 5


def remember_lock(folder: Path, lock: Lock) -> None:
    """Keep the lock with which a run starts or goes on in its folder."""
    write_lock(str(folder / NAME), lock)


def check_same_lock(folder: Path, lock: Lock) -> None:
    """Raise StaleDataError, naming the differences, if the checkpoints in a folder were trained on another mixture."""
    path = folder / NAME
    if not path.is_file():
        return
    found = differences(read_lock(str(path)), lock)
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise StaleDataError(
            f"the checkpoints here were trained on another mixture: {'; '.join(found[:_SHOWN])}{more}.",
            where=str(folder / "checkpoints"),
            hint="Put the mixture back as it was, choose another --run, or remove the folder to start over.",
        )
