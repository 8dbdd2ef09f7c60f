"""A finished small run, made once for all tests and copied for each that changes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.mixtures.small_run import write_run
from tests.mixtures.test_write import write


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests interrupt programs, not the power: what was written stays, whether or not it has reached the disk."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with corpus, tokenizer and mixture; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    write(write_run(folder))
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> str:
    """A copy of it in `tmp_path`."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return str(tmp_path)
