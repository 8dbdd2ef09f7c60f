"""Jobs that never end: without progress they are cancelled or given up; finished work stays, and a second run ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState

from roots_pipeline.core.errors import EngineError, RecipeError
from roots_pipeline.core.stopping import Stopped, stopping_at_once
from roots_pipeline.core.tasks import Commit, Task, run_task
from roots_pipeline.engines import watch
from roots_pipeline.engines.beam import BeamEngine
from roots_pipeline.engines.watch import Stalled, run_watched
from tests.engines.clusters import PortableServices, portable_services
from tests.engines.test_local import square, tasks


class EndlessResult(PipelineResult):
    """A job that ends when it is cancelled, if `answers`."""

    def __init__(self, answers: bool) -> None:
        super().__init__(PipelineState.RUNNING)  # type: ignore[no-untyped-call]
        self._answers, self._ended = answers, threading.Event()

    def wait_until_finish(self, duration: Any = None) -> str:
        self._ended.wait()
        return str(PipelineState.CANCELLED)

    def cancel(self) -> None:
        if not self._answers:
            threading.Event().wait()
        self._ended.set()


class Cancellable(PipelineRunner):
    def run_pipeline(self, pipeline: Any, options: Any) -> EndlessResult:
        return EndlessResult(True)


class Deaf(PipelineRunner):
    def run_pipeline(self, pipeline: Any, options: Any) -> EndlessResult:
        return EndlessResult(False)


def options(runner: type[PipelineRunner], seconds: float) -> list[str]:
    return ["--runner", f"{__name__}.{runner.__name__}", "--stall_minutes", str(seconds / 60)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "CANCEL_SECONDS", 0.3)
    monkeypatch.setattr(watch, "_END_SECONDS", 0.2)


@pytest.mark.parametrize("runner", [Cancellable, Deaf])
def test_a_job_without_progress_ends_with_a_sentence(
        tmp_path: Path, impatient: None, runner: type[PipelineRunner]) -> None:
    todo = tasks(tmp_path, 3)
    run_task(todo[0])
    with pytest.raises(EngineError) as caught:
        BeamEngine(options(runner, 0.6)).run(todo, "squares")
    said = str(caught.value)
    assert said.startswith(f"{runner.__name__}: no task was finished for 0.01 minutes, so the job was cancelled")
    assert ("did not answer" in said) == (runner is Deaf)
    assert "step 'squares' with 2 of 3 tasks to do, the first t1" in said and "same command" in said
    assert (tmp_path / "0.json").exists()


def test_progress_keeps_a_job_alive_and_a_finished_one_needs_no_end(tmp_path: Path, impatient: None) -> None:
    todo = tasks(tmp_path, 6)

    def work() -> None:
        for task in todo:
            time.sleep(0.5)  # all together take longer than the job may go on without progress
            run_task(task)

    elsewhere = threading.Thread(target=work)
    elsewhere.start()
    found = BeamEngine(options(Cancellable, 1.5)).run(todo, "squares")
    elsewhere.join()
    assert [result["square"] for result in found] == [n * n for n in range(6)]


def test_a_signal_cancels_the_job(tmp_path: Path) -> None:
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(Stopped), stopping_at_once():
        BeamEngine(options(Cancellable, 600)).run(tasks(tmp_path, 1), "squares")


def test_what_a_given_up_job_had_started_is_ended(impatient: None) -> None:
    started: list[psutil.Popen] = []

    def job() -> int:
        started.append(psutil.Popen(["sleep", "600"]))
        return int(started[0].wait())

    with pytest.raises(Stalled):
        run_watched(job, lambda: None, lambda: None, 0.5)
    assert not started[0].is_running() or started[0].status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf", "soon"])
def test_the_time_must_be_one(minutes: str) -> None:
    with pytest.raises(RecipeError, match="stall_minutes"):
        BeamEngine(["--stall_minutes", minutes])


def slow(commit: Commit, *, path: str, number: int) -> dict[str, Any]:
    time.sleep(0.5)
    return square(commit, path=path, number=number)


def test_a_killed_worker_of_a_pool_ends_the_run_and_the_next_one_goes_on(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[float] = []
    # Time flies once the worker is dead, so that the limit can be longer than the start of a worker ever takes.
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(200 * (time.monotonic() - at) for at in killed))
    monkeypatch.setattr(watch, "time", clock)
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.2)
    folder = tmp_path / "run"
    todo = [Task(task.name, task.record, "1", slow, task.arguments) for task in tasks(folder, 4)]
    with portable_services(tmp_path) as services:
        killer = threading.Thread(target=kill_worker, args=(folder, services, killed))
        killer.start()
        with pytest.raises(EngineError, match=r"PortableRunner: no task was finished for 10 minutes, .* the first t"):
            BeamEngine([*services.options, "--stall_minutes", "10"]).run(todo, "squares")
        killer.join()
        killed.clear()
        assert 0 < len(list(folder.glob("*.json"))) < 4
        found = BeamEngine(services.options).run(todo, "squares")
    assert [result["square"] for result in found] == [n * n for n in range(4)]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*"0123", *(f"{n}.json" for n in range(4))])


def kill_worker(folder: Path, services: PortableServices, killed: list[float]) -> None:
    """Once a task is finished, kill the worker that the pool has started."""
    while not list(folder.glob("*.json")):
        time.sleep(0.05)
    for worker in psutil.Process(services.pool.pid).children(recursive=True):
        worker.kill()
    killed.append(time.monotonic())
