"""A task runs once, runs again when anything it depends on changed, and never trusts half a result."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core import tasks
from roots_pipeline.core.storage import hash_file
from roots_pipeline.core.tasks import Commit, Task, finished_result, run_task


def write_text(commit: Commit, *, path: str, text: str) -> dict[str, Any]:
    with commit.file(path) as temporary:
        Path(temporary).write_text(text)
    return {"length": len(text)}


def task(folder: Path, text: str, fingerprint: str) -> Task:
    arguments = {"path": str(folder / "out"), "text": text}
    return Task("t", str(folder / "out.json"), fingerprint, write_text, arguments)


def test_a_finished_task_is_not_run_again(tmp_path: Path) -> None:
    assert finished_result(task(tmp_path, "abc", "1")) is None
    assert run_task(task(tmp_path, "abc", "1")) == {"length": 3}
    assert finished_result(task(tmp_path, "abc", "1")) == {"length": 3}


def test_another_fingerprint_a_lost_or_a_cut_file_make_it_run_again(tmp_path: Path) -> None:
    run_task(task(tmp_path, "abc", "1"))
    assert finished_result(task(tmp_path, "abc", "2")) is None
    (tmp_path / "out").write_text("ab")
    assert finished_result(task(tmp_path, "abc", "1")) is None
    (tmp_path / "out").unlink()
    assert finished_result(task(tmp_path, "abc", "1")) is None


def test_a_damaged_record_makes_it_run_again(tmp_path: Path) -> None:
    run_task(task(tmp_path, "abc", "1"))
    (tmp_path / "out.json").write_text("[")
    assert finished_result(task(tmp_path, "abc", "1")) is None
    (tmp_path / "out.json").write_text("[]")
    assert finished_result(task(tmp_path, "abc", "1")) is None


def test_a_folder_may_be_moved_and_copied(tmp_path: Path) -> None:
    run_task(task(tmp_path / "a", "abc", "1"))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a" / "out").unlink()
    assert finished_result(task(tmp_path / "b", "abc", "1")) == {"length": 3}
    assert finished_result(task(tmp_path / "a", "abc", "1")) is None


def test_files_are_hashed_again_only_if_they_may_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def noted(path: str) -> str:
        hashed.append(path)
        return hash_file(path)

    monkeypatch.setattr(tasks, "hash_file", noted)
    made = task(tmp_path, "abc", "1")
    run_task(made)
    hashed.clear()
    for _ in range(2):  # so young that a change could bear the same time
        assert finished_result(made) is not None
    assert len(hashed) == 2
    monkeypatch.setattr(tasks, "_OLD_NS", -1)
    for _ in range(3):
        assert finished_result(made) is not None
    assert len(hashed) == 3
    (tmp_path / "out").write_text("xyz")
    assert finished_result(made) is None
