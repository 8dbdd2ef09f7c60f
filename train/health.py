"""Slow processors and full disks, noticed while a run goes on.

One slow GPU among 384 made BLOOM's run 5% slower for days, and was found by leaving out three nodes at a time. Here all
processes do the same small piece of work now and then, without talking, and who takes longer than the others is named.
"""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from roots_pipeline.core.errors import StorageError

_REPEATS = 3


def time_fixed_work(device: torch.device) -> float:
    """Seconds of a matrix multiplication, the best of three."""
    size, kind = (4096, torch.bfloat16) if device.type == "cuda" else (384, torch.float32)
    left = torch.full((size, size), 0.5, device=device, dtype=kind)
    best = float("inf")
    for _ in range(_REPEATS):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        started = time.perf_counter()
        for _ in range(10):
            left @ left
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return best


def slow_ones(seconds: list[float], factor: float) -> dict[int, float]:
    """Processes that take more than `factor` times the median, and how many times."""
    usual = median(seconds)
    return {rank: one / usual for rank, one in enumerate(seconds) if one > factor * usual}


def slow_processes(device: torch.device, factor: float) -> list[str]:
    """Names of slow processes, for people; all processes call this together."""
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.barrier()
    dist.all_gather_object(everyone, (socket.gethostname(), time_fixed_work(device)))
    slow = slow_ones([seconds for _, seconds in everyone], factor)
    return [f"process {rank} on {everyone[rank][0]} ({times:.2f} times the median)" for rank, times in slow.items()]


def check_space(folder: Path, needed: int) -> None:
    """Raise StorageError if a checkpoint of `needed` bytes does not fit on the disk of `folder`."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StorageError(
            f"a checkpoint takes {needed / 2**30:.2f} GiB and {free / 2**30:.2f} GiB are free; nothing was written.",
            where=str(folder),
            hint="Make room and run the same command again; older checkpoints are kept.",
        )


def space_warning(folder: Path, needed: int) -> str | None:
    """A sentence if the disk has no room for two more checkpoints."""
    free = shutil.disk_usage(folder).free
    if free >= 2 * needed:
        return None
    return f"{free / 2**30:.2f} GiB are free in {folder}; a checkpoint takes {needed / 2**30:.2f} GiB."
