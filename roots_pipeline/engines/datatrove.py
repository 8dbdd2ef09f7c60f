"""The datatrove engine: the tasks of each step as a pipeline of datatrove, on any of its executors.

`RunTasks` is a `PipelineStep` that replays a plan (`core.replay`) and does its rank's share of the first step that is
not finished. A run is as many such jobs, one after the other, as the plan has rounds: `DatatroveEngine` starts them on
this machine; chained with `depends=` they run under `SlurmPipelineExecutor`, or with Ray (see docs/engines.md).

datatrove's own memory of what is complete is a file per rank that knows nothing of parameters, so it is not used: each
job logs into a fresh folder, and our records say what is done. Its local executor waits for ever for a worker that was
killed, so each worker here is a process of its own that runs an executor over its own ranks, and is watched.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import ForkServerProcess
from typing import Any

from datatrove.data import DocumentsPipeline
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep

from roots_pipeline.core.errors import EngineError, RootbloomError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.replay import OneStep, Plan, Replay, T, Unfinished
from roots_pipeline.core.stopping import SIGNALS, signals_held
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.attempts import Job, attempt, code_mark, kept_error, pack, unpack

_START_SECONDS = 10.0  # a worker that was killed before it had a group of its own


class RunTasks(PipelineStep):  # type: ignore[misc]  # datatrove ships no types
    """Do this rank's share of the first unfinished step of a plan. It reads and yields no documents.

    Rank r of w takes the tasks r, r + w, …: any number of ranks gives the same files.
    """

    name = "Rootbloom tasks"
    type = "ROOTBLOOM"

    def __init__(self, plan: Plan[Any], job: Job | None = None) -> None:
        super().__init__()
        self._plan = pack(plan)
        self._job = job or Job(uuid.uuid4().hex, code_mark())

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Raises the first error of a task, so that datatrove does not call this rank complete."""
        try:
            unpack(self._plan)(Replay())
        except Unfinished as left:
            for place in left.todo:
                if place % world_size == rank:
                    with self.track_time("task"):
                        error = attempt(left.tasks[place], self._job)
                    if error is not None:
                        raise error from None
                    self.stat_update("tasks", unit="task")
        yield from data or ()


class DatatroveEngine:
    """Runs each step as ranks of a LocalPipelineExecutor, one rank and process per worker (default: one per core)."""

    def __init__(self, workers: int | None = None, progress: Progress | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._progress = progress or Progress(quiet=True)

    def __str__(self) -> str:
        return "datatrove (LocalPipelineExecutor)"

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        """Results of all tasks, in their order. Raises the first task's error, or EngineError if a worker died."""
        return self.follow(OneStep(tuple(tasks), title), 1)

    def follow(self, plan: Plan[T], rounds: int) -> T:
        """Follow a plan, however many steps it has."""
        while True:
            try:
                return plan(Replay())
            except Unfinished as rest:
                left = rest
            self._progress.event("tasks", stage=left.title, run=len(left.todo),
                                 reused=len(left.tasks) - len(left.todo))
            # Of one step only: a rank that finds the first step finished would begin with the next one.
            self._run_step(OneStep(tuple(left.tasks), left.title), left)

    def _run_step(self, step: OneStep, left: Unfinished) -> None:
        job = Job(uuid.uuid4().hex, code_mark())
        logs = tempfile.mkdtemp(prefix="rootbloom-datatrove-")
        world = min(self.workers, len(step.tasks))
        context = get_context("forkserver")
        pipeline = [RunTasks(step, job)]
        ranks = [context.Process(target=_run_rank, args=(pipeline, world, rank, logs)) for rank in range(world)]
        try:
            with signals_held():
                for rank in ranks:
                    rank.start()
            died = _first_death(ranks)
        finally:
            for rank in ranks:
                _end(rank)
        if (error := kept_error([left.tasks[place] for place in left.todo], job)) is not None:
            raise error
        if died is not None:
            raise EngineError(f"a worker of datatrove died in step '{step.title}' ({died}).", where=logs,
                              hint="Its log is there; the same command takes up where this ended.")
        shutil.rmtree(logs, ignore_errors=True)


def _first_death(ranks: Sequence[ForkServerProcess]) -> str | None:
    """Wait for all processes to end well, or for the first that does not; says how it ended."""
    waiting = {rank.sentinel: rank for rank in ranks}
    while waiting:
        for sentinel in connection.wait(list(waiting)):
            assert isinstance(sentinel, int)
            rank = waiting.pop(sentinel)
            rank.join()
            code = rank.exitcode or 0
            if code:
                return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return None


def _end(rank: ForkServerProcess) -> None:
    """Kill what is left of a worker: itself and the helpers that datatrove started for it."""
    if rank.pid is None:
        return
    rank.kill()
    rank.join(_START_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(rank.pid, signal.SIGKILL)


def _run_rank(pipeline: Sequence[PipelineStep], world: int, rank: int, logs: str) -> None:
    """One rank, in a process group of its own; what datatrove prints goes to a file beside its logs."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # the parent decides
    _end_with_parent()
    with open(os.path.join(logs, f"rank-{rank}.txt"), "wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    executor = LocalPipelineExecutor(
        list(pipeline), tasks=world, workers=1, local_tasks=1, local_rank_offset=rank,
        logging_dir=os.path.join(logs, str(rank)), skip_completed=False,
    )
    try:
        executor.run()
    except RootbloomError:
        os._exit(3)  # the parent finds the error with the task


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_kill, args=(parent.sentinel,), daemon=True).start()


def _wait_and_kill(sentinel: int) -> None:
    connection.wait([sentinel])
    os.killpg(0, signal.SIGKILL)
