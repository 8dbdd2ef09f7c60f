"""The local engine: results in order, errors at once, a dead worker named, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import EngineError, SourceError
from roots_pipeline.core.tasks import Commit, Task
from roots_pipeline.engines.local import LocalEngine


def square(commit: Commit, *, path: str, number: int) -> dict[str, Any]:
    with commit.file(path) as temporary:
        Path(temporary).write_text(str(number * number))
    return {"square": number * number}


def complain(commit: Commit, *, number: int) -> dict[str, Any]:
    raise SourceError("unreadable", where=f"file-{number}", hint="Mend it.")


def die(commit: Commit) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def sleep(commit: Commit, *, pids: str) -> dict[str, Any]:
    (Path(pids) / str(os.getpid())).touch()
    time.sleep(600)
    return {}


def tasks(folder: Path, count: int) -> list[Task]:
    return [
        Task(f"t{n}", str(folder / f"{n}.json"), "1", square, {"path": str(folder / str(n)), "number": n})
        for n in range(count)
    ]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_results_are_in_order_and_kept(tmp_path: Path, workers: int) -> None:
    with LocalEngine(workers) as engine:
        first = engine.run(tasks(tmp_path, 9), "squares")
        assert [result["square"] for result in first] == [n * n for n in range(9)]
        assert engine.tasks_run == 9
        assert engine.run(tasks(tmp_path, 9), "squares") == first
        assert engine.tasks_run == 9


@pytest.mark.parametrize("workers", [1, 2])
def test_our_errors_arrive_whole(tmp_path: Path, workers: int) -> None:
    bad = [Task(f"t{n}", str(tmp_path / f"{n}.json"), "1", complain, {"number": n}) for n in range(3)]
    with pytest.raises(SourceError) as caught, LocalEngine(workers) as engine:
        engine.run(bad, "complaints")
    assert str(caught.value) == f"{caught.value.where}: unreadable Mend it."


def test_a_dead_worker_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="killer"), LocalEngine(2) as engine:
        engine.run([Task("killer", str(tmp_path / "k.json"), "1", die), *tasks(tmp_path, 2)], "deaths")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    code = f"""
from tests.engines.test_local import sleep
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.local import LocalEngine
if __name__ == "__main__":
    arguments = {{"pids": r"{tmp_path}"}}
    LocalEngine(2).run([Task(f"t{{n}}", r"{tmp_path}/%d.json" % n, "1", sleep, arguments) for n in range(2)], "sleep")
"""
    script = tmp_path / "run.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    parent = subprocess.Popen([sys.executable, str(script)], env=environment)
    workers: list[int] = []
    deadline = time.monotonic() + 60
    while len(workers) < 2 and time.monotonic() < deadline:
        workers = [int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()]
        time.sleep(0.05)
    assert len(workers) == 2
    parent.kill()
    parent.wait()
    while any(_alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in workers)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def note(commit: Commit, *, log: str, number: int) -> dict[str, Any]:
    with open(log, "a") as file:
        file.write(f"{number} ")
    return {"number": number}


def test_large_tasks_come_first_and_results_stay_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tasks = [Task(f"task {number}", str(tmp_path / f"{number}.json"), "mark", note,
                  {"log": str(log), "number": number}, size) for number, size in enumerate([3, 9, 1, 9])]
    with LocalEngine(1) as engine:
        results = engine.run(tasks, "noting")
    assert [result["number"] for result in results] == [0, 1, 2, 3]
    assert log.read_text() == "1 3 0 2 "
