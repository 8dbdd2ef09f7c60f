"""A watch over a job whose runner may wait for ever, as some do when a worker is killed.

The job runs in a thread. This process looks, from time to time, at what has been achieved; if that does not change for
too long, the job is cancelled, and if it does not end even then, it is given up: its thread is left behind, and the
processes that it started here are ended, since they would keep this process alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import psutil

T = TypeVar("T")

# How long a runner may take to cancel a job, and the job to end after that.
CANCEL_SECONDS = 30.0
_END_SECONDS = 5.0
_LONGEST_PAUSE = 60.0  # between two looks: each may read many records


class Stalled(Exception):
    """Nothing was achieved for so many seconds. `cancelled`: the job ended when it was told to."""

    def __init__(self, seconds: float, cancelled: bool) -> None:
        super().__init__(seconds, cancelled)
        self.seconds, self.cancelled = seconds, cancelled


class _Thread(Generic[T]):
    """A call in a thread of its own, which nothing waits for at the end of the process."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found.append(self._call())
        except BaseException as error:  # it belongs to whoever asks for the result
            self._error = error

    def ended(self, seconds: float) -> bool:
        """Whether it has ended; waits so long for that."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What it returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._found[0]


def run_watched(job: Callable[[], T], achieved: Callable[[], object], cancel: Callable[[], None], seconds: float) -> T:
    """The result of a job. Raises what the job raises, and Stalled if `achieved()` stays the same for `seconds`.

    What interrupts the waiting, such as a signal, cancels the job as well.
    """
    before = _children()
    running = _Thread(job)
    try:
        seen, since = achieved(), time.monotonic()
        while not running.ended(min(_LONGEST_PAUSE, seconds / 10)):
            if (now := achieved()) != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since >= seconds:
                raise Stalled(seconds, _cancelled(running, cancel, before))
        return running.result()
    except Stalled:
        raise
    except BaseException:
        if not running.ended(0):
            _cancelled(running, cancel, before)
        raise


def _cancelled(running: _Thread[T], cancel: Callable[[], None], before: set[psutil.Process]) -> bool:
    """Cancel a job; whether it ended. The processes that it started here are ended in any case."""
    _Thread(cancel).ended(CANCEL_SECONDS)
    running.ended(_END_SECONDS)
    for process in _children() - before:
        with suppress(psutil.Error):
            process.kill()
    return running.ended(_END_SECONDS)


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))
