"""Worlds of several processes for tests, made by forking: PyTorch and DeepSpeed are imported once for all of them.

Only for a driver that has not computed anything yet: threads do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import orjson


def run_world(processes: int, work: Callable[[], Any], folder: Path) -> Any:
    """Call `work` in each of `processes` new processes; returns what the first one's returned, as from JSON.

    If one fails, the others are ended and so is the driver.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = folder / f"world_{port}.json"
    context = multiprocessing.get_context("fork")
    members = [context.Process(target=_member, args=(rank, processes, port, work, result)) for rank in range(processes)]
    for member in members:
        member.start()
    running = {member.sentinel: member for member in members}
    while running:
        for sentinel in wait(list(running)):
            ended = running.pop(int(str(sentinel)))
            ended.join()
            if ended.exitcode:
                for other in running.values():
                    other.kill()
                sys.exit(f"process {members.index(ended)} of {processes} ended with {ended.exitcode}")
    return orjson.loads(result.read_bytes())


def _member(rank: int, processes: int, port: int, work: Callable[[], Any], result: Path) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    found = work()
    if rank == 0:
        result.write_bytes(orjson.dumps(found))
