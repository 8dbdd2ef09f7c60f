"""The local engine: a pool of worker processes on one machine.

Finished tasks (see `core.tasks`) are skipped, so a run that was killed goes on where it was. An error in one task
stops the run at once; so does the death of a worker. Workers end with their parent, however it dies.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from types import TracebackType
from typing import Any

from roots_pipeline.core.errors import EngineError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Task, finished_result, run_task

_PRELOAD = ["numba", "pyarrow.parquet", "roots_pipeline.core.tasks"]


class LocalEngine:
    """Runs tasks in `workers` processes (default: one per core; 1 runs them in this process)."""

    def __init__(self, workers: int | None = None, progress: Progress | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._progress = progress or Progress(quiet=True)
        self._pool: ProcessPoolExecutor | None = None
        self.tasks_run = 0

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=kind is None, cancel_futures=True)
            self._pool = None

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        """Results of all tasks, in their order. Raises the first task's error, or EngineError if a worker died."""
        results = [finished_result(task) for task in tasks]
        todo = [index for index, result in enumerate(results) if result is None]
        self._progress.event("tasks", stage=title, run=len(todo), reused=len(tasks) - len(todo))
        self.tasks_run += len(todo)
        if todo:
            with self._progress.stage(title, len(todo)) as bar:
                if self.workers == 1:
                    for index in todo:
                        results[index] = run_task(tasks[index])
                        bar.advance()
                else:
                    self._run_in_pool(tasks, todo, results, bar.advance)
        return [result for result in results if result is not None]

    def _run_in_pool(self, tasks: Sequence[Task], todo: list[int], results: list[Any], advance: Any) -> None:
        pool = self._pool = self._pool or _new_pool(self.workers)
        waiting: dict[Future[dict[str, Any]], int] = {}
        queue = iter(todo)
        try:
            # Only as many tasks as workers are under way, so that an error leaves little to wait for.
            while True:
                while len(waiting) < self.workers + 1 and (index := next(queue, None)) is not None:
                    waiting[pool.submit(run_task, tasks[index])] = index
                if not waiting:
                    return
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    results[waiting[future]] = future.result()
                    del waiting[future]
                    advance()
        except BrokenProcessPool as error:
            self._pool = None
            names = ", ".join(sorted(tasks[index].name for index in waiting.values()))
            raise EngineError(
                f"a worker process died while these were under way: {names}.",
                hint="It may have been killed or have run out of memory; the same command takes up where this ended.",
            ) from error
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


def _new_pool(workers: int) -> ProcessPoolExecutor:
    # Not fork: a forked child inherits locks that library threads may hold. The fork server starts clean ones fast.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever; this thread ends it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel
        threading.Thread(target=lambda: (connection.wait([sentinel]), os._exit(1)), daemon=True).start()
