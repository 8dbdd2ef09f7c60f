"""The child of `isolation`: reads requests from stdin, answers on stdout, and lets the kernel end it.

Run as `python -m roots_pipeline.sources.isolation_child module:function`. A request is two big-endian
32-bit lengths, a JSON header (options, limits) and the data; an answer is one length and a JSON object.
"""

from __future__ import annotations

import importlib
import logging
import os
import resource
import select
import signal
import struct
import sys
from typing import BinaryIO

import orjson

_POLL_SECONDS = 5.0


def serve(function: str) -> None:
    """Answer until stdin closes or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes stdin
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not look like an answer
    requests = os.fdopen(0, "rb", buffering=0)
    logging.disable(logging.CRITICAL)
    module, _, name = function.partition(":")
    run = getattr(importlib.import_module(module), name)
    _answer(answers, b"{}")
    while _waiting(requests):
        sizes = _exactly(requests, 8)
        if sizes is None:
            return
        header_size, data_size = struct.unpack(">II", sizes)
        header, data = _exactly(requests, header_size), _exactly(requests, data_size)
        if header is None or data is None:
            return
        request = orjson.loads(header)
        resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        try:
            result = orjson.dumps(run(data, request["options"]))
        except MemoryError:
            reason = f"needs more than {request['memory'] >> 20:,} MiB of memory"
            result = orjson.dumps({"error": reason, "exhausted": True})  # the parent replaces this process
        except Exception as error:
            result = orjson.dumps({"error": f"{type(error).__name__}: {ascii(str(error))[1:-1][:200]}"})
        signal.setitimer(signal.ITIMER_PROF, 0)
        _answer(answers, result)


def _waiting(requests: BinaryIO) -> bool:
    """Wait for a request. False once the parent is gone: another process may still hold the pipe open."""
    parent = os.getppid()
    waiting = select.poll()
    waiting.register(requests, select.POLLIN)
    while not waiting.poll(1000 * _POLL_SECONDS):
        if os.getppid() != parent:
            return False
    return True


def _exactly(requests: BinaryIO, size: int) -> bytes | None:
    parts = []
    while size:
        part = requests.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _answer(answers: BinaryIO, result: bytes) -> None:
    answers.write(struct.pack(">I", len(result)) + result)
    answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
