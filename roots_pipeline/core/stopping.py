"""SIGINT and SIGTERM: the first asks to stop, the second ends at once.

Where nothing has to be finished, a signal raises `Stopped` on the spot, and every `finally` on the way out cleans up.
Inside `finishing`, which an engine puts around its tasks, the first signal is only noted: tasks under way may be
finished and committed within a time of grace, after which they are stopped by the same exception.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Schedulers wait about 30 s (Slurm, Kubernetes) between SIGTERM and SIGKILL.
GRACE_SECONDS = 20.0


class Stopped(BaseException):
    """Somebody wants this process to end; not an `Exception`, so that nothing on the way takes it for a fault."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that was ended by this signal."""
        return 128 + self.number


class Stopping:
    """Whether a signal has come, and what is to be done about the next one."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._process = os.getpid()

    def raise_if_asked(self) -> None:
        """Raise `Stopped` if a signal has come."""
        if self.number is not None:
            raise Stopped(self.number)

    def at_once(self, number: int, frame: FrameType | None) -> None:
        """Handler: raise `Stopped`."""
        self._note(number)
        raise Stopped(number)

    def after_grace(self, number: int, frame: FrameType | None) -> None:
        """Handler: note it, and raise `Stopped` when the time of grace is over."""
        self._note(number)
        print("stopping: tasks under way are being finished; another signal ends this at once.", file=sys.stderr,
              flush=True)
        signal.signal(signal.SIGALRM, self._grace_is_over)
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)

    def _grace_is_over(self, number: int, frame: FrameType | None) -> None:
        self.raise_if_asked()

    def _note(self, number: int) -> None:
        if self.number is not None or os.getpid() != self._process:  # a second one, or a fork that inherited this
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.number = number


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Signals raise `Stopped` in this block (in the main thread; elsewhere they do what they did)."""
    with _handling(Stopping().at_once):
        yield


@contextmanager
def finishing() -> Iterator[Stopping]:
    """Signals are noted in this block: look at `number`, finish what is under way, then call `raise_if_asked`."""
    stopping = Stopping()
    before = signal.getsignal(signal.SIGALRM)
    with _handling(stopping.after_grace):
        try:
            yield stopping
        finally:
            if stopping.number is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            # None: a library set it, not Python, and it cannot be put back.
            signal.signal(number, signal.SIG_DFL if old is None else old)


@contextmanager
def signals_held() -> Iterator[None]:
    """Signals wait until this block ends. Processes started in it never get them: stopping is for their parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
