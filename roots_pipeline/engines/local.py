"""The local engine: worker processes on one machine.

Finished tasks (see `core.tasks`) are skipped, so a run that was killed goes on where it was. An error in one task
stops the run at once; so does the death of a worker. SIGINT and SIGTERM let the tasks under way finish and be
committed, for 20 seconds at most (see `core.stopping`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection
from types import TracebackType
from typing import Any

from roots_pipeline.core.errors import EngineError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.stopping import Stopping, finishing
from roots_pipeline.core.tasks import Task, finished_result, run_task
from roots_pipeline.engines.workers import Worker, WorkerDied, end_all, prepare_workers

_LOOK_SECONDS = 1.0  # how often a run that waits for tasks looks up


class LocalEngine:
    """Runs tasks in `workers` processes (default: one per core; 1 runs them in this process)."""

    def __init__(self, workers: int | None = None, progress: Progress | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._progress = progress or Progress(quiet=True)
        self._pool: list[Worker] = []
        self.tasks_run = 0

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_workers()

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        """Results of all tasks, in their order. Raises the first task's error, or EngineError if a worker died."""
        results = [finished_result(task) for task in tasks]
        todo = [index for index, result in enumerate(results) if result is None]
        todo.sort(key=lambda index: -tasks[index].size)
        self._progress.event("tasks", stage=title, run=len(todo), reused=len(tasks) - len(todo))
        if todo:
            with self._progress.stage(title, len(todo)) as bar, finishing() as stopping:

                def done(index: int, result: dict[str, Any]) -> None:
                    results[index] = result
                    self.tasks_run += 1
                    bar.advance()

                if self.workers == 1:
                    _run_here(tasks, todo, done, stopping)
                else:
                    self._run_in_workers(tasks, todo, done, stopping)
        return [result for result in results if result is not None]

    def _run_in_workers(self, tasks: Sequence[Task], todo: Sequence[int],
                        done: Callable[[int, dict[str, Any]], None], stopping: Stopping) -> None:
        try:
            while len(self._pool) < min(self.workers, len(todo)):
                self._pool.append(Worker())
            queue = iter(todo)
            while True:
                for worker in self._pool:
                    if worker.task is None and stopping.number is None and (index := next(queue, None)) is not None:
                        worker.begin(index, tasks[index])
                busy = [worker for worker in self._pool if worker.task is not None]
                if not busy:
                    stopping.raise_if_asked()
                    return
                ready = connection.wait([sign for worker in busy for sign in worker.signs], _LOOK_SECONDS)
                for worker in busy:
                    if worker.task is not None and any(sign in ready for sign in worker.signs):
                        done(worker.task, worker.answer())
        except WorkerDied as error:
            names = ", ".join(sorted(tasks[worker.task].name for worker in self._pool if worker.task is not None))
            self._end_workers()
            stopping.raise_if_asked()
            raise EngineError(
                f"a worker process died ({error}) while these were under way: {names}.",
                hint="It may have been killed or have run out of memory; the same command takes up where this ended.",
            ) from error
        except BaseException:
            self._end_workers()
            raise

    def _end_workers(self) -> None:
        workers, self._pool = self._pool, []
        end_all(workers)


def prepare(workers: int | None) -> None:
    """Begin to get ready for so many workers, which takes a second that a run can be planned in."""
    if (workers or os.cpu_count() or 1) > 1:
        with suppress(OSError, EOFError):  # where there can be no workers, the first task says so
            prepare_workers()


def _run_here(tasks: Sequence[Task], todo: Sequence[int], done: Callable[[int, dict[str, Any]], None],
              stopping: Stopping) -> None:
    for index in todo:
        done(index, run_task(tasks[index]))
        stopping.raise_if_asked()
