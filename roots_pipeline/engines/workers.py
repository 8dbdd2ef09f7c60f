"""Worker processes that run tasks one by one, and end with their parent, however that dies.

A worker gets tasks through a pipe and answers with a result or an error. Signals for the whole group of processes (as
Ctrl-C on a terminal and schedulers send them) do not reach it: when to stop is decided by the parent, which asks with
SIGUSR1. That raises inside the task, so that its temporary files go; a worker that does not listen is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection, forkserver, resource_tracker
from types import FrameType
from typing import Any

from roots_pipeline.core.stopping import SIGNALS, Stopped, signals_held
from roots_pipeline.core.tasks import Task, run_task

_PRELOAD = ["roots_pipeline.core.tasks", "roots_pipeline.stage_table", "roots_pipeline.steps"]
_LISTENING_SECONDS = 5.0


class WorkerDied(Exception):
    """A worker ended without an answer; the message says how."""


class Worker:
    """One process. Raises WorkerDied if it cannot be started.

    `task` is the number of the task under way, None if it waits for one.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self.pipe, other = context.Pipe()
        self.task: int | None = None
        self._process = context.Process(target=_work, args=(other,), daemon=True)
        try:
            prepare_workers()
            with signals_held():
                self._process.start()
        except (EOFError, OSError) as error:
            raise WorkerDied("could not be started") from error
        finally:
            other.close()

    @property
    def signs(self) -> tuple[Any, Any]:
        """What becomes ready when there is an answer, or no life any more."""
        return self.pipe, self._process.sentinel

    def begin(self, number: int, task: Task) -> None:
        """Give it a task. Raises WorkerDied."""
        self.task = number
        try:
            self.pipe.send(task)
        except OSError as error:
            raise WorkerDied(self._how()) from error

    def answer(self) -> dict[str, Any]:
        """The result of its task. Raises what the task raised, or WorkerDied."""
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(self._how()) from error
        self.task = None
        if kind == "error":
            raise pickle.loads(value)
        result: dict[str, Any] = value
        return result

    def _how(self) -> str:
        self._process.join(_LISTENING_SECONDS)
        code = self._process.exitcode
        return f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"

    def ask_to_stop(self) -> None:
        """Interrupt its task, or end it where it waits for one."""
        if self.task is None:
            self._process.kill()
        elif self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGUSR1)

    def end(self, deadline: float) -> None:
        """Wait for it until `time.monotonic()` is `deadline`, then kill it."""
        self._process.join(max(0.0, deadline - time.monotonic()))
        self._process.kill()
        self._process.join()
        self.pipe.close()


def prepare_workers() -> None:
    """Have the fork server started, if it is not yet; it imports what tasks need while the caller goes on.

    Workers are not forked from this process: they would inherit locks that library threads may hold. The fork server
    has only threads of memory allocators, which are made to be forked.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(_PRELOAD)
    resource_tracker.ensure_running()  # else the fork server would start it, and it lets the signals through
    with signals_held():
        forkserver.ensure_running()


def end_all(workers: Sequence[Worker]) -> None:
    """Stop workers whatever they are doing; none is left when this returns."""
    for worker in workers:
        worker.ask_to_stop()
    deadline = time.monotonic() + _LISTENING_SECONDS
    for worker in workers:
        worker.end(deadline)


def _work(pipe: connection.Connection) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # a fork server that others had started would let them through
    signal.signal(signal.SIGUSR1, _interrupt)
    _end_with_parent()
    with suppress(Stopped, EOFError):
        while True:
            task = pipe.recv()
            try:
                answer: tuple[str, Any] = ("result", run_task(task))
            except Exception as error:
                answer = ("error", _packed(error))
            pipe.send(answer)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def _packed(error: Exception) -> bytes:
    """An error for the trip to the parent, with its traceback as a note; in words if it cannot travel itself."""
    note = "in a worker process:\n" + "".join(traceback.format_exception(error))
    error.add_note(note)
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:
        other = RuntimeError(f"{type(error).__name__}: {error}")
        other.add_note(note)
        return pickle.dumps(other)
    return packed


def _end_with_parent() -> None:
    """A worker whose parent was killed would go on with its task; this thread ends it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel
        threading.Thread(target=lambda: (connection.wait([sentinel]), os._exit(1)), daemon=True).start()
