"""Worker processes that find each other, forked from this one: PyTorch and DeepSpeed are imported once for all.

What torchrun would do, without its cost: environment variables for each rank, and when one process fails, the others
are ended. Only for a process that has not used PyTorch yet; tests start one with `python -m`.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable

import torch

# What each process would otherwise import when it makes its first optimizer, for seconds.
importlib.import_module("train.parallel.backend")
torch.optim.AdamW([torch.zeros(1, requires_grad=True)])


def start(processes: int, work: Callable[[], None]) -> list[int]:
    """Fork `processes` workers that each call `work`; returns their process ids by rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pids = []
    sys.stdout.flush()
    sys.stderr.flush()
    for rank in range(processes):
        pid = os.fork()
        if pid == 0:
            os.environ.update(
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(processes), MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo",
            )  # fmt: skip
            code = 1
            try:
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    return pids


def wait(pids: list[int], until: Callable[[], None] = lambda: None) -> bool:
    """Wait for all workers, calling `until` meanwhile; whether all succeeded. A failure ends the others."""
    running, succeeded = set(pids), True
    while running:
        until()
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            time.sleep(0.002)
            continue
        running.discard(pid)
        if status != 0 and succeeded:
            succeeded = False
            for other in running:
                os.kill(other, signal.SIGKILL)
    return succeeded


def run(processes: int, work: Callable[[], None]) -> None:
    """Fork workers and wait for them; leaves this program with exit code 1 if one fails."""
    if not wait(start(processes, work)):
        sys.exit(1)
