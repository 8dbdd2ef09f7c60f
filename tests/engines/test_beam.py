"""The Beam engine: order, errors in one sentence, work that a runner loses or does twice, options nobody knows."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import EngineError, RecipeError, SourceError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Commit, Engine, Task
from roots_pipeline.engines import attempts
from roots_pipeline.engines.attempts import Job, attempt, code_mark, kept_error, pack
from roots_pipeline.engines.beam import BeamEngine, next_tasks, run_tasks
from roots_pipeline.engines.choice import EngineName, open_engine
from tests.engines.test_local import complain, square, tasks


def stumble(commit: Commit) -> dict[str, Any]:
    raise ValueError("a bug of ours")


def slow_square(commit: Commit, *, path: str, number: int) -> dict[str, Any]:
    time.sleep(0.2)
    return square(commit, path=path, number=number)


class SumOfSquares:
    """A plan of two steps: the second depends on what the first found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, engine: Engine) -> int:
        squares = engine.run(tasks(self.folder / "first", 5), "squares")
        total = sum(result["square"] for result in squares)
        arguments = {"path": str(self.folder / "total"), "number": total}
        last = Task("total", str(self.folder / "total.json"), str(total), square, arguments)
        found: int = engine.run([last], "total")[0]["square"]
        return found


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_plan_is_followed_in_as_many_jobs_as_it_needs(tmp_path: Path, rounds: int) -> None:
    assert BeamEngine().follow(SumOfSquares(tmp_path), rounds) == (0 + 1 + 4 + 9 + 16) ** 2
    (tmp_path / "total.json").unlink()
    assert BeamEngine().follow(SumOfSquares(tmp_path), rounds) == 900


def test_results_are_in_order_and_nothing_is_done_twice(tmp_path: Path) -> None:
    first = BeamEngine().run(tasks(tmp_path, 12), "squares")
    assert [result["square"] for result in first] == [n * n for n in range(12)]
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert BeamEngine().run(tasks(tmp_path, 12), "squares") == first
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


def test_our_errors_arrive_whole_and_leave_nothing(tmp_path: Path) -> None:
    bad = [Task(f"t{n}", str(tmp_path / f"{n}.json"), "1", complain, {"number": n}) for n in range(3)]
    with pytest.raises(SourceError) as caught:
        BeamEngine().run(bad, "complaints")
    assert str(caught.value) == "file-0: unreadable Mend it."
    assert not list(tmp_path.iterdir())


def test_a_bug_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"FnApiRunner: the Beam job failed in step 'bugs' \(.*a bug of ours"):
        BeamEngine().run([Task("t", str(tmp_path / "t.json"), "1", stumble)], "bugs")


def test_the_sentence_inside_an_error_of_the_network_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost(Exception):
        def __str__(self) -> str:
            return "<_MultiThreadedRendezvous of RPC that terminated with:\n\tdetails = ...\n>"

        def details(self) -> str:
            return "Socket closed"

    monkeypatch.setattr(BeamEngine, "_submit", lambda self, plan, rounds, job: Lost())
    with pytest.raises(EngineError, match=r"failed in step 'squares' \(Socket closed\)"):
        BeamEngine().run(tasks(tmp_path, 1), "squares")


def test_lost_work_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BeamEngine, "_submit", lambda self, plan, rounds, job: None)
    with pytest.raises(EngineError, match=r"FnApiRunner: .* 3 of 3 tasks of step 'squares' left no result, .*0\.json"):
        BeamEngine().run(tasks(tmp_path, 3), "squares")


def test_an_element_may_be_run_twice_at_the_same_time(tmp_path: Path) -> None:
    job = Job("1", code_mark())
    arguments = {"path": str(tmp_path / "out"), "number": 7}
    element = 1, [b"T" + pack(Task("t", str(tmp_path / "t.json"), "1", slow_square, arguments))] * 2
    told: list[Any] = []
    threads = [threading.Thread(target=lambda: told.append(run_tasks(element, job))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [[(0, b"D")]] * 4
    assert (tmp_path / "out").read_text() == "49"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t.json"]


def test_nothing_is_planned_after_an_error_or_from_nothing(tmp_path: Path) -> None:
    plan = b"P" + pack(SumOfSquares(tmp_path))
    assert [key for key, _ in next_tasks((0, [plan, b"D", plan]))] == [0, 1, 2, 3, 4, 5]
    assert next_tasks((0, [plan, b"D", b"F"])) == []
    assert next_tasks((3, [b"N"])) == []


def test_a_worker_with_other_code_does_nothing(tmp_path: Path) -> None:
    task, job = tasks(tmp_path, 1)[0], Job("1", "another")
    assert isinstance(attempt(task, job), EngineError)
    assert kept_error([task], Job("2", "")) is None  # the note of another job is no news
    attempt(task, job)
    assert "other code" in str(kept_error([task], job))
    assert not list(tmp_path.iterdir())


def test_errors_of_the_system_are_sentences_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(task: Task) -> dict[str, Any]:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(attempts, "run_task", full)
    assert "the disk is full" in str(attempt(tasks(tmp_path, 1)[0], Job("1", code_mark())))


@pytest.mark.parametrize(("options", "message"), [
    (["--direct_num_wokers", "2"], "do not know these options: .*--direct_num_wokers"),
    (["--direct_num_workers=many"], "invalid int value: 'many'"),
    (["stray"], "do not know these options: .*stray"),
    (["--runner", "FlinkRuner"], "knows no runner 'FlinkRuner'. .*FlinkRunner"),
    (["--runner", "no.such.module.Runner"], "cannot be loaded"),
])  # fmt: skip
def test_options_that_nobody_knows_are_errors(options: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        BeamEngine(options)


def test_options_belong_to_their_engine() -> None:
    quiet = Progress(quiet=True)
    with pytest.raises(RecipeError, match="has no use for '--runner X'"), open_engine(
        EngineName.local, None, ["--runner", "X"], quiet
    ):
        pass
    with pytest.raises(RecipeError, match="the runner decides"), open_engine(EngineName.beam, 2, None, quiet):
        pass
    with open_engine(EngineName.beam, None, None, quiet) as engine:
        assert str(engine) == "Beam (FnApiRunner)"
