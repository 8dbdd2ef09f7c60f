"""Which process does what: data x tensor x pipeline parallelism.

Tensor-parallel processes are neighbours (they talk most), then data-parallel ones, then pipeline stages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from roots_pipeline.core.errors import TrainingError
from train.parallel.backend import (
    PipelineParallelGrid,
    PipeModelDataParallelTopology,
    deepspeed,
    quiet_deepspeed,
)
from train.parallel.layout import Layout
from train.parallel.tensor import TensorParallel


@dataclass(frozen=True, slots=True)
class Place:
    """This process in the layout. `grid` is DeepSpeed's view of it and holds the process groups."""

    layout: Layout
    rank: int
    data_rank: int
    stage: int
    tensor: TensorParallel
    device: torch.device
    grid: Any

    @property
    def reads_data(self) -> bool:
        """Tokens enter at the first stage and labels at the last."""
        return self.stage in (0, self.layout.pipeline - 1)

    @property
    def leads(self) -> bool:
        """The one process that writes logs and manifests."""
        return self.rank == 0


def connect(layout: Layout, collective_minutes: float = 60.0) -> Place:
    """Join the other processes and find this one's place in the layout.

    A collective operation that takes longer than `collective_minutes` fails. Without torchrun's environment variables
    this process is the only one.
    """
    alone = "RANK" not in os.environ and not dist.is_initialized()
    if alone:
        os.environ["LOCAL_RANK"] = "0"
    device = _choose_device()
    with quiet_deepspeed():
        backend = "nccl" if device.type == "cuda" else "gloo"
        if alone:  # no port to find, no other process to wait for
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
        deepspeed.init_distributed(backend, verbose=False)
        if dist.get_world_size() != layout.processes:
            raise TrainingError(
                f"the layout {layout} needs {layout.processes} processes, {dist.get_world_size()} were started."
            )
        topology = PipeModelDataParallelTopology(num_pp=layout.pipeline, num_mp=layout.tensor, num_dp=layout.data)
        grid = PipelineParallelGrid(topology=topology)
    _limit_collectives(timedelta(minutes=collective_minutes))
    tensor = TensorParallel(layout.tensor, grid.get_slice_parallel_rank(), grid.get_slice_parallel_group())
    return Place(
        layout,
        dist.get_rank(),
        grid.get_data_parallel_rank(),
        grid.get_pipe_parallel_rank(),
        tensor,
        device,
        grid,
    )


def _limit_collectives(limit: timedelta) -> None:
    """Groups made by DeepSpeed have PyTorch's default limits; this sets all that this process belongs to."""
    for group in list(dist.distributed_c10d._world.pg_map):
        if isinstance(group, dist.ProcessGroup):
            dist.distributed_c10d._set_pg_timeout(limit, group)


def _choose_device() -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device
