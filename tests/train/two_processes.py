"""Everything that needs two processes, in one start of them: writes FOLDER/results.json, scenario name -> log."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import torch
import torch.distributed as dist

from roots_pipeline.core.errors import RootbloomError
from tests.train.scenario import MadeUpText, make_trainer, settings, train
from train import health
from train.model.loss import vocabulary_loss
from train.parallel.tensor import TensorParallel
from train.parallel.topology import connect


def main(folder: Path) -> None:
    layouts: dict[str, dict[str, Any]] = {
        "data": {},
        "tensor": {"tensor_parallel": 2},
        "pipeline": {"pipeline_parallel": 2},
        "pipeline_recomputed": {"pipeline_parallel": 2, "activation_checkpointing": True},
        "tensor_bf16": {"tensor_parallel": 2, "precision": "bf16"},
        "tensor_dropout": {"tensor_parallel": 2, "dropout": 0.1},
        "data_ramp": {"batch_ramp": {"start": 4, "increment": 4, "samples": 10}, "global_batch": 8, "steps": 4},
    }
    results: dict[str, Any] = {}
    for name, changes in layouts.items():
        results[name] = train(settings(**changes), folder / name, processes=2)
    for name in ("data", "tensor", "pipeline", "tensor_dropout"):
        stopped = folder / f"{name}_stopped"
        train(settings(**layouts[name]), stopped, processes=2, stop_after=5)
        results[f"{name}_resumed"] = train(settings(**layouts[name]), stopped, processes=2)
    results["signalled"] = train(settings(), folder / "signalled", processes=2, source=Signals(1), watched=True)
    results["loss"] = vocabulary_parallel_loss()
    results["slow"] = slow_neighbour()
    results["drift"] = message_of(lambda: drift(folder / "drift"))
    results["late"] = late_for_a_collective()  # the last one: the group cannot be used afterwards
    if dist.get_rank() == 0:
        (folder / "results.json").write_bytes(orjson.dumps(results))


class Signals(MadeUpText):
    """Sends a signal to one process while it reads its first sample of step 3."""

    def __init__(self, rank: int) -> None:
        super().__init__(16)
        self.rank = rank

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        if index == 8 + 2 * self.rank and dist.get_rank() == self.rank:
            os.kill(os.getpid(), signal.SIGUSR1)
        return super().__getitem__(index)


def slow_neighbour() -> list[str]:
    """What is found if the second process does all work three times."""
    place = connect(settings().layout(2))
    once, own = health.time_fixed_work, dist.get_rank()
    health.time_fixed_work = lambda device: (own + 1) * 3.0 + 0.0 * once(device)
    try:
        return health.slow_processes(place.device, 1.2)
    finally:
        health.time_fixed_work = once


def late_for_a_collective() -> float:
    """Seconds until a process gives up waiting for one that comes later than the limit allows."""
    place = connect(settings(tensor_parallel=2).layout(2), 1.0 / 60)
    started, ones = time.monotonic(), torch.ones(1)
    if dist.get_rank() == 1:
        time.sleep(4)
        return 0.0
    try:
        place.tensor.all_reduce(ones)
    except RuntimeError:
        return time.monotonic() - started
    return 0.0


def vocabulary_parallel_loss() -> dict[str, Any]:
    """Loss and gradients of a head cut over two processes, for comparison with the whole one."""
    place = connect(settings(tensor_parallel=2).layout(2))
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(7, 5, generator=generator).requires_grad_()
    whole = torch.randn(12, 5, generator=generator)
    labels = torch.randint(0, 12, (7,), generator=generator)
    parallel: TensorParallel = place.tensor
    first, count = parallel.share(12)
    part = whole[first : first + count].clone().requires_grad_()
    loss = vocabulary_loss(hidden, part, labels, parallel)
    loss.backward()
    assert hidden.grad is not None and part.grad is not None
    gradients = [torch.empty_like(part) for _ in range(2)]
    dist.all_gather(gradients, part.grad)
    return {"loss": loss.item(), "hidden": hidden.grad.tolist(), "weight": torch.cat(gradients).tolist()}


def drift(folder: Path) -> None:
    """BLOOM's incident: a LayerNorm of one tensor-parallel process is no longer that of the others.

    After one step: a second one would carry the difference into parameters that come earlier.
    """
    trainer = make_trainer(settings(tensor_parallel=2), folder, processes=2, stop_after=1)
    if dist.get_rank() == 1:
        with torch.no_grad():
            trainer.engine.module.get_parameter("2.input_layernorm.weight")._hp_mapping.hp_fragment[3] += 1e-6
    trainer.run()


def message_of(action: Any) -> str:
    try:
        action()
    except RootbloomError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
