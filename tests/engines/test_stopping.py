"""Ctrl-C and SIGTERM: tasks under way are committed, nothing is left half, a second signal ends at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.tasks import Commit

# What `slow` waits for before it commits: this many seconds, looked at often.
SCRIPT = """
import sys
import typer
from roots_pipeline.core import stopping
from roots_pipeline.core.cli import run_app
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.local import LocalEngine
from tests.engines.test_stopping import slow

stopping.GRACE_SECONDS = float({grace})
app = typer.Typer(pretty_exceptions_enable=False)

@app.command()
def work() -> None:
    folder = r"{folder}"
    arguments = [dict(folder=folder, number=number, seconds={seconds}) for number in range(6)]
    tasks = [Task(f"t{{n}}", f"{{folder}}/{{n}}.json", "1", slow, entry) for n, entry in enumerate(arguments)]
    with LocalEngine({workers}) as engine:
        engine.run(tasks, "slow")

if __name__ == "__main__":
    run_app(app)
"""


def slow(commit: Commit, *, folder: str, number: int, seconds: float) -> dict[str, Any]:
    with commit.file(f"{folder}/{number}.out") as temporary:
        Path(temporary).write_text(str(os.getpid()))
        Path(folder, f"begun-{number}").touch()
        time.sleep(seconds)
    return {"number": number}


def wait_for(happened: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def start(folder: Path, *, workers: int, seconds: float, grace: float = 20.0) -> subprocess.Popen[str]:
    (folder / "run.py").write_text(SCRIPT.format(folder=folder, workers=workers, seconds=seconds, grace=grace))
    process = subprocess.Popen([sys.executable, str(folder / "run.py")], env={**os.environ, "PYTHONPATH": os.getcwd()},
                               start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(folder.glob("begun-*"))) >= workers)
    return process


@pytest.mark.parametrize(
    ("workers", "number", "group"), [(1, signal.SIGTERM, False), (2, signal.SIGTERM, True), (2, signal.SIGINT, True)])
def test_tasks_under_way_are_finished_and_no_others_begun(
        tmp_path: Path, workers: int, number: signal.Signals, group: bool) -> None:
    process = start(tmp_path, workers=workers, seconds=1.0)
    (os.killpg if group else os.kill)(process.pid, number)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name}" in printed and "the same command" in printed and "Traceback" not in printed
    begun = {path.name.removeprefix("begun-") for path in tmp_path.glob("begun-*")}
    assert begun == {path.stem for path in tmp_path.glob("*.json")} == {path.stem for path in tmp_path.glob("*.out")}
    assert workers <= len(begun) < 6
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_after_the_time_of_grace_tasks_are_stopped_and_leave_nothing(tmp_path: Path, workers: int) -> None:
    process = start(tmp_path, workers=workers, seconds=600, grace=0.3)
    process.send_signal(signal.SIGTERM)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 143 and "Traceback" not in printed
    assert list(tmp_path.glob("*.json")) == list(tmp_path.glob("*.out")) == list(tmp_path.glob(".*")) == []


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    process = start(tmp_path, workers=2, seconds=600)
    pids = [int(path.read_text()) for path in tmp_path.glob(".*.tmp")]
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "another signal" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert len(pids) == 2
    wait_for(lambda: not any(_alive(pid) for pid in pids))


def masks(commit: Commit) -> dict[str, Any]:
    return {name: int(Path(f"/proc/{pid}/status").read_text().split("SigBlk:")[1].split()[0], 16)
            for name, pid in (("worker", os.getpid()), ("fork server", os.getppid()))}


def test_signals_reach_neither_workers_nor_the_fork_server(tmp_path: Path) -> None:
    code = f"""
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.local import LocalEngine
from tests.engines.test_stopping import masks
if __name__ == "__main__":
    with LocalEngine(2) as engine:
        print(*engine.run([Task(str(n), r"{tmp_path}/%d.json" % n, "1", masks) for n in range(2)], "masks")[0].values())
"""
    (tmp_path / "run.py").write_text(code)
    done = subprocess.run([sys.executable, str(tmp_path / "run.py")], env={**os.environ, "PYTHONPATH": os.getcwd()},
                          capture_output=True, text=True, check=True)
    for mask in map(int, done.stdout.split()):
        for number in (signal.SIGINT, signal.SIGTERM):
            assert mask >> (number - 1) & 1


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
