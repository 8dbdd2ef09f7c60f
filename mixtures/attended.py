"""Programs that never outlive the process that started them, however it dies.

    python -m mixtures.attended MODULE ARGUMENT...

is `python -m MODULE ARGUMENT...` in a group of processes of its own, with a pipe as standard input that nobody writes
to. When the other end closes, because its owner has died or wants no more of it, the whole group is killed. Signals for
the owner's group (Ctrl-C on a terminal) do not reach it: when to stop is for the owner to decide.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence


class Children:
    """Modules that run as attended programs, from as many threads as call `run`."""

    def __init__(self) -> None:
        self._lifelines: set[int] = set()
        self._lock, self._ended = threading.Lock(), False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run `python -m command...` to its end; after `end` it is killed at once."""
        reading, writing = os.pipe()
        try:
            with self._lock:
                self._lifelines.add(writing)
            try:
                child = subprocess.Popen(
                    [sys.executable, "-m", "mixtures.attended", *command],
                    stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(environment),
                )  # fmt: skip
            finally:
                os.close(reading)
            with self._lock:
                if self._ended:
                    self._cut(writing)
            out, err = child.communicate()
        finally:
            with self._lock:
                self._cut(writing)
        return subprocess.CompletedProcess(list(command), child.returncode, out, err)

    def end(self) -> None:
        """Kill all that run, and all that are started from now on."""
        with self._lock:
            self._ended = True
            for lifeline in list(self._lifelines):
                self._cut(lifeline)

    def _cut(self, lifeline: int) -> None:
        if lifeline in self._lifelines:
            self._lifelines.remove(lifeline)
            os.close(lifeline)


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the other end is closed
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    module, sys.argv = sys.argv[1], sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
