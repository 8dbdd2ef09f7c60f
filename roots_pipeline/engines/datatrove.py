"""The datatrove engine: the tasks of each step as a pipeline of datatrove, on any of its executors.

`RunTasks` is a `PipelineStep` that replays a plan (`core.replay`) and does its rank's share of the first step that is
not finished. Under `SlurmPipelineExecutor` a run is as many such jobs, chained with `depends=`, as the plan has rounds
(see docs/engines.md); `DatatroveEngine` runs the whole plan as one job on this machine.

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
import time
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

_END_SECONDS = 10.0
# How long a rank that has nothing to do waits before it looks again.
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


class RunTasks(PipelineStep):  # type: ignore[misc]  # datatrove ships no types
    """Do this rank's share of the first unfinished step of a plan. It reads and yields no documents.

    Rank r of w takes the tasks r, r + w, …: any number of ranks gives the same files. With `whole`, it goes on with the
    next step once the other ranks have done their shares, to the end of the plan: all ranks must run at the same time.
    """

    name = "Rootbloom tasks"
    type = "ROOTBLOOM"

    def __init__(self, plan: Plan[Any], job: Job | None = None, *, whole: bool = False) -> None:
        super().__init__()
        self._plan = pack(plan)
        self._job = job or Job(uuid.uuid4().hex, code_mark())
        self._whole = whole

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Raises the first error of a task, so that datatrove does not call this rank complete."""
        plan, wait = unpack(self._plan), _FIRST_WAIT
        while (left := _left(plan)) is not None:
            mine = [place for place in left.todo if place % world_size == rank]
            for place in mine:
                with self.track_time("task"):
                    error = attempt(left.tasks[place], self._job)
                if error is not None:
                    raise error from None
                self.stat_update("tasks", unit="task")
            if not self._whole:
                break
            wait = _FIRST_WAIT if mine else min(2 * wait, _LONGEST_WAIT)
            if not mine:
                time.sleep(wait)
        yield from data or ()


def _left(plan: Plan[Any]) -> Unfinished | None:
    """The first step of a plan that is not finished."""
    try:
        plan(Replay())
    except Unfinished as left:
        return left
    return None


class DatatroveEngine:
    """Runs plans as ranks of a LocalPipelineExecutor, one rank and process per worker (default: one per core)."""

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
        if (first := _left(plan)) is not None:
            self._progress.event("datatrove job", workers=self.workers, first_step=first.title)
            self._run_job(plan)
        return plan(Replay())

    def _run_job(self, plan: Plan[Any]) -> None:
        job = Job(uuid.uuid4().hex, code_mark())
        logs = tempfile.mkdtemp(prefix="rootbloom-datatrove-")
        context = get_context("forkserver")
        pipeline = [RunTasks(plan, job, whole=True)]
        arguments = [(pipeline, self.workers, rank, logs) for rank in range(self.workers)]
        ranks = [context.Process(target=_run_rank, args=given) for given in arguments]
        try:
            with signals_held():
                for rank in ranks:
                    rank.start()
            died = _first_death(ranks)
        finally:
            for rank in ranks:
                _end(rank)
        if (left := _left(plan)) is not None:  # where the plan itself fails, it fails here, too
            if (error := kept_error([left.tasks[place] for place in left.todo], job)) is not None:
                raise error
            raise EngineError(f"a worker of datatrove died in step '{left.title}' ({died}).", where=logs,
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
    rank.join(_END_SECONDS)
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
