"""One run of the whole chain on the embedded sample, shared by the tests of this folder."""

from __future__ import annotations

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
    """`make corpus tokenizer train` in an empty folder."""
    folder = tmp_path_factory.mktemp("chain")
    printed = run_make(project, folder, "corpus", "tokenizer", "train")
    return Chain(folder / "runs" / "sample", printed)
