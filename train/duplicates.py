"""Copies of a parameter must stay equal: in tensor-parallel, data-parallel and tied places.

BLOOM's LayerNorms drifted apart over tensor-parallel processes for a week before it was noticed, and its tied
embedding had two copies that were clipped differently. Both show at the first save here, as one differing checksum.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from roots_pipeline.core.errors import TrainingError
from train.parallel.topology import Place

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(values: Tensor) -> tuple[int, int]:
    """Two sums of the bits of a tensor, of all elements and of every second: any one changed bit changes the first."""
    bits = values.detach().reshape(-1).view(_INTEGERS[values.element_size()])
    return int(bits.sum(dtype=torch.int64)), int(bits[::2].sum(dtype=torch.int64))


def check_duplicates(model: nn.Module, place: Place) -> None:
    """Raise TrainingError, in all processes, if two of them hold different copies of the same values."""
    if place.layout.processes == 1:
        return
    own = {}
    for name, parameter in model.named_parameters():
        part = place.tensor.rank if getattr(parameter, "partition_dim", None) is not None else 0
        own[f"{name} (part {part})"] = checksum(parameter)
    everyone: list[Any] = [None] * place.layout.processes
    dist.all_gather_object(everyone, own)
    first: dict[str, tuple[tuple[int, int], int]] = {}
    for rank, found in enumerate(everyone):
        for name, value in found.items():
            before, holder = first.setdefault(name, (value, rank))
            if before != value:
                raise TrainingError(
                    f"processes {holder} and {rank} hold different copies of {name}.",
                    hint="Nothing was saved; go on from the last checkpoint. If it comes back, a device or a link is "
                    "faulty: run once with other nodes.",
                )
