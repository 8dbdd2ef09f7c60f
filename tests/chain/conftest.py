"""One run of the whole chain on the embedded sample, shared by the tests of this folder."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chain.commands import run_make


@dataclass(frozen=True)
class Chain:
    """A finished run and what its commands printed."""

    run: Path
    printed: str


@pytest.fixture(scope="session")
def chain(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """`make corpus tokenizer train` in an empty folder, once for all processes of the tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "chain"
    folder.mkdir(exist_ok=True)
    printed = folder / "printed.txt"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not printed.exists():
            printed.write_text(run_make(project, folder, "corpus", "tokenizer", "train"))
    return Chain(folder / "runs" / "sample", printed.read_text())
