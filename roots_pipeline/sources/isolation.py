"""Run a function on hostile bytes in a child process that can be killed.

Parsers written in C hang or crash on some pages, and while they do, no Python signal handler and no thread
can stop them. So the function runs in a child; its CPU time is limited by the kernel, whose signal ends the
process whatever it is doing. CPU time and not wall time, so that a busy machine does not change which pages
are lost.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from roots_pipeline.core.errors import EngineError

_CALLS_PER_CHILD = 5000  # parsers leak a little; a fresh child starts with none of it
_START_SECONDS = 300.0


class Killed(Exception):
    """The child did not survive a call; the message says why, as a reason for quarantine."""


class Isolated:
    """A function `module:name`, called as `function(data, options) -> dict`, in a child process of its own.

    The child starts at the first call, is replaced after its death and is shared by nobody: after a fork,
    the new process starts its own.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._calls = 0
        self._lock = threading.Lock()

    def call(self, data: bytes, options: dict[str, Any], *, seconds: float, memory_bytes: int) -> dict[str, Any]:
        """The function's answer, or `{"error": ...}` if it raised.

        `seconds` of CPU time and `memory_bytes` of memory are the limits of the child. Raises Killed if it
        exceeds them or crashes, EngineError if a child cannot be started at all.
        """
        request = orjson.dumps({"options": options, "seconds": seconds, "memory": memory_bytes})
        message = struct.pack(">II", len(request), len(data)) + request + data
        with self._lock:
            if self._calls >= _CALLS_PER_CHILD:
                self._stop()
            child = self._running()
            try:
                _send(child, message)
            except BrokenPipeError:  # it was ended between two calls: no fault of this one
                self._stop()
                child = self._running()
                _send(child, message)
            self._calls += 1
            answer = _receive(child, 10 * seconds + 30)
            if answer is None:
                raise Killed(self._obituary(seconds))
            result: dict[str, Any] = orjson.loads(answer)
            if result.pop("exhausted", False):
                self._stop()
            return result

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._owner == os.getpid():
            return self._child
        package_parent = str(Path(__file__).resolve().parents[2])
        search = os.pathsep.join(filter(None, (package_parent, os.environ.get("PYTHONPATH"))))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "roots_pipeline.sources.isolation_child", self._function],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": search},
        )
        if self._owner != os.getpid():
            atexit.register(self._stop)
        self._owner, self._calls = os.getpid(), 0
        if _receive(self._child, _START_SECONDS) is None:
            self._stop()
            raise EngineError(f"the process that runs {self._function} did not start.",
                              hint="Its own message stands above; is the installation complete?")
        return self._child

    def _obituary(self, seconds: float) -> str:
        """Why the child died; forgets it."""
        child = self._child
        self._child = None
        assert child is not None
        timed_out = child.poll() is None and not _ended_soon(child)
        if timed_out:
            child.kill()
        code = child.wait()
        _close(child)
        if timed_out or code == -signal.SIGPROF:
            return f"took more than {seconds:g} s of CPU time"
        if code < 0:
            return f"crashed the parser ({signal.Signals(-code).name})"
        return f"ended the parser (exit code {code})"

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None and self._owner == os.getpid():
            child.kill()
            child.wait()
            _close(child)


def _send(child: subprocess.Popen[bytes], message: bytes) -> None:
    assert child.stdin is not None
    child.stdin.write(message)
    child.stdin.flush()


def _receive(child: subprocess.Popen[bytes], seconds: float) -> bytes | None:
    """One answer; None if the child ends, or is silent for so long."""
    assert child.stdout is not None
    waiting = select.poll()  # not select.select, which knows no descriptors above 1,023
    waiting.register(child.stdout, select.POLLIN)
    if not waiting.poll(1000 * seconds):
        return None
    head = child.stdout.read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack(">I", head)
    body = child.stdout.read(length)
    return body if len(body) == length else None


def _ended_soon(child: subprocess.Popen[bytes]) -> bool:
    try:
        child.wait(1)
    except subprocess.TimeoutExpired:
        return False
    return True


def _close(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
