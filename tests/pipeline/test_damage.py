"""Damaged stage files, full disks, odd clocks and second runs: a sentence, and the same bytes at last."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roots_pipeline.core.errors import SourceError, StorageError
from roots_pipeline.sources import files as source_files
from tests.pipeline.test_run import WORDS, digest, many, run, write_lines, write_recipe

__all__ = ["many"]  # a fixture


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def test_a_changed_byte_in_a_small_file_makes_its_task_run_again(tmp_path: Path, many: str) -> None:
    run(many, tmp_path / "out")
    before = digest(tmp_path / "out")
    for name in ("documents/s-00001.parquet", ".work/0-read/s-00002.parquet", ".work/0-resolve/0000.found",
                 ".work/0-judge/s-00000.keys"):
        path = tmp_path / "out" / name
        flip(path, path.stat().st_size // 2)
    assert run(many, tmp_path / "out")[1] >= 3
    assert digest(tmp_path / "out") == before


def test_a_changed_byte_in_a_large_file_is_noticed_by_its_reader(tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", [os.urandom(400).hex() for _ in range(1500)])
    recipe = write_recipe(tmp_path, [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")}], WORDS,
                          allow_empty=True)
    run(recipe, tmp_path / "out")
    before = digest(tmp_path / "out")
    stage = tmp_path / "out" / ".work" / "0-read" / "s-00000.parquet"
    assert stage.stat().st_size > 300_000
    flip(stage, stage.stat().st_size // 2)
    (tmp_path / "out" / "rejected" / "s-00000.parquet").unlink()  # so that the text is read again
    with pytest.raises(StorageError, match="was damaged, and was deleted"):
        run(recipe, tmp_path / "out")
    run(recipe, tmp_path / "out")
    assert digest(tmp_path / "out") == before


def test_an_input_that_changes_while_it_is_read_ends_the_run(
        tmp_path: Path, many: str, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, state_of = tmp_path / "in" / "2.jsonl", source_files.state_of
    whole = victim.read_bytes()
    seen: list[str] = []

    def cutting(path: str) -> str | None:
        seen.append(path)
        if seen.count(str(victim)) == 1:  # asked for by the reading task
            os.truncate(victim, 10)
        return state_of(path)

    monkeypatch.setattr(source_files, "state_of", cutting)
    with pytest.raises(SourceError, match="changed during the run"):
        run(many, tmp_path / "out")
    monkeypatch.undo()
    victim.write_bytes(whole)
    run(many, tmp_path / "out")
    run(many, tmp_path / "fresh")
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")


def test_no_order_of_times_matters(tmp_path: Path, many: str) -> None:
    run(many, tmp_path / "out")
    before = digest(tmp_path / "out")
    for number, path in enumerate(sorted(tmp_path.rglob("*"))):
        moment = time.time() + (10**8 if number % 2 else -(10**8))
        if path.is_file():
            os.utime(path, (moment, moment))
    assert run(many, tmp_path / "out")[1] == 6  # inputs that look changed are hashed again
    write_lines(tmp_path / "in" / "3.jsonl", ["one two three four"] * 2, "f3-")
    os.utime(tmp_path / "in" / "3.jsonl", (0, 0))
    assert run(many, tmp_path / "out")[1] > 0
    assert digest(tmp_path / "out") != before
    run(many, tmp_path / "fresh")
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")


def command(recipe: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "roots_pipeline", "run", "--recipe", recipe, "--run", str(folder), "--workers", "1",
            "--quiet"]


def test_the_second_of_two_runs_is_refused(tmp_path: Path, many: str) -> None:
    first = subprocess.Popen(command(many, tmp_path / "run"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "corpus" / ".lock").exists():
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)  # with the lock in hand
        second = subprocess.run(command(many, tmp_path / "run"), capture_output=True, text=True, timeout=60)
    finally:
        first.kill()
        first.wait()
    assert second.returncode == 2
    assert "another run is writing here" in second.stderr and "Traceback" not in second.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB, where such may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("file systems may not be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_or_read_only_disk_is_a_sentence_and_work_goes_on_afterwards(small_disk: Path, many: str) -> None:
    filler = small_disk / "filler"
    for free in (0, 16 << 10, 64 << 10):
        with open(filler, "wb") as out:
            os.posix_fallocate(out.fileno(), 0, (3 << 20) - free - (16 << 10))
        with pytest.raises(StorageError, match="the disk is full"):
            run(many, small_disk / "out")
        filler.unlink()
        assert list(small_disk.rglob(".*.tmp")) == []
    gc.collect()  # tracebacks of the errors above keep files open
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="read-only"):
        run(many, small_disk / "out")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    run(many, small_disk / "out")
    run(many, small_disk.parent / "fresh")
    assert digest(small_disk / "out") == digest(small_disk.parent / "fresh")
