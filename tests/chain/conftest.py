"""One run of the whole chain on the embedded sample, shared by the tests of this folder.

`ROOTBLOOM_CHAIN=runs/name` names a run that `make corpus tokenizer train RUN=runs/name | tee runs/name.log` has made,
so that CI need not make it twice.
"""

from __future__ import annotations

import os
import shutil
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
    """`make corpus tokenizer train` in an empty folder, or a copy of a run that was made so."""
    folder = tmp_path_factory.mktemp("chain")
    if made := os.environ.get("ROOTBLOOM_CHAIN"):
        shutil.copytree(project / made, folder / "runs" / "sample")
        run_make(project, folder, "report")  # it names its run
        return Chain(folder / "runs" / "sample", (project / f"{made}.log").read_text())
    printed = run_make(project, folder, "corpus", "tokenizer", "train")
    return Chain(folder / "runs" / "sample", printed)
