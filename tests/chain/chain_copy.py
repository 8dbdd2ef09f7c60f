"""Copies of a run that cost no disk: large files are linked, since commands replace files and never write into them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_SMALL = 1 << 18  # bytes; logs and histories, which are appended to, are smaller


def copy_of(run: Path, target: Path, without: tuple[str, ...] = ()) -> None:
    """Copy a run folder, some steps excepted."""
    shutil.copytree(run, target, copy_function=_copy, ignore=lambda folder, _: without if Path(folder) == run else ())


def _copy(source: str, target: str) -> None:
    if os.path.getsize(source) < _SMALL:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
