"""Ends a job that hangs, and writes where every process stands; tells others that the run is alive.

A process that waits for another waits for ever: BLOOM's run lost 35 hours to three such deadlocks. Here every process
has a thread that notices when no step has finished for too long. It writes the stacks of its own threads, lets the
other processes of its machine write theirs (a stopped one is woken for it), and ends the process; the launcher then
ends the rest, or starts all of them again from the last checkpoint. A process whose interpreter is blocked, so that no
thread of it can run, is ended a little later by a timer below Python.

The thread of the leading process also writes RUN/model/heartbeat.json, and warns of a disk that fills up.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch.distributed as dist

from roots_pipeline.core.storage import write_json
from train.launch import HUNG

_TIME_TO_WRITE = 1.0  # for the other processes of this machine
_TIMER_LATER = 20.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A process of the run on this machine; the time of its start tells it from a later one with its number."""

    rank: int
    pid: int
    started: float

    def wake_and_ask(self) -> None:
        """Let it write its stacks; one that was stopped does so before it goes on."""
        try:
            process = psutil.Process(self.pid)
            if process.create_time() == self.started:
                process.send_signal(signal.SIGUSR2)
                process.send_signal(signal.SIGCONT)
        except psutil.Error:
            return


def neighbours() -> list[Neighbour]:
    """The other processes of the run on this machine; all processes call this together."""
    own = psutil.Process()
    me = (socket.gethostname(), dist.get_rank(), own.pid, own.create_time())
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, me)
    return [Neighbour(*one[1:]) for one in everyone if one[0] == me[0] and one[1] != me[1]]


class Watchdog:
    """`progress` must be called again before `seconds` (0: for ever) have passed, or the process ends.

    `beat` is called every `every` seconds in a thread, if given.
    """

    def __init__(
        self,
        folder: Path,
        rank: int,
        seconds: float,
        others: Sequence[Neighbour] = (),
        beat: Callable[[], None] | None = None,
        every: float = 10.0,
    ) -> None:
        self._seconds, self._others, self._rank = seconds, others, rank
        self._beat, self._every = beat, every
        self._path = folder / "stacks" / f"process_{rank:05d}.txt"
        self._last, self._doing = time.monotonic(), "starting"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a", encoding="utf-8")
        faulthandler.register(signal.SIGUSR2, file=self._file, all_threads=True)
        self.progress("starting")
        self._thread.start()

    def progress(self, doing: str) -> None:
        """Something has been finished; `doing` says what comes next."""
        self._last, self._doing = time.monotonic(), doing
        if self._seconds:
            faulthandler.dump_traceback_later(self._seconds + _TIMER_LATER, file=self._file, exit=True)

    def stop(self) -> None:
        """Watch no longer; a file without stacks is removed."""
        self._over.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        faulthandler.unregister(signal.SIGUSR2)
        self._file.close()
        if self._path.stat().st_size == 0:
            self._path.unlink()

    def _watch(self) -> None:
        pause = min(self._every, self._seconds / 4 if self._seconds else self._every)
        spoke = float("-inf")
        while not self._over.wait(pause):
            if self._seconds and time.monotonic() - self._last > self._seconds:
                self._end()
            if self._beat is not None and time.monotonic() - spoke >= self._every:
                spoke = time.monotonic()
                self._beat()

    def _end(self) -> None:
        waited = time.monotonic() - self._last
        what = f"process {self._rank} on {socket.gethostname()}: {waited:.0f} seconds without progress, {self._doing}"
        self._file.write(f"\n{what}\n")
        self._file.flush()
        faulthandler.dump_traceback(file=self._file, all_threads=True)
        for other in self._others:
            other.wake_and_ask()
        time.sleep(_TIME_TO_WRITE)
        print(f"error: {what}. The job ends; stacks of all its processes are in {self._path.parent}.", file=sys.stderr)
        sys.stderr.flush()
        os._exit(HUNG)


def heartbeat(model: Path, facts: Callable[[], dict[str, Any]]) -> Callable[[], None]:
    """A function that writes RUN/model/heartbeat.json with the time and some facts."""

    def beat() -> None:
        value = {"time": time.time(), "host": socket.gethostname(), "pid": os.getpid(), **facts()}
        write_json(str(model / "heartbeat.json"), value)

    return beat
