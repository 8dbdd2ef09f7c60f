"""The planner's memory beside what processes really take, on a CPU.

Each configuration trains three steps in fresh processes. What is measured is the largest resident size since the model
began to be built, less the size before: by then everything is imported, connected, and a tiny model has trained, so
that code and working memory of libraries are there. glibc is told to hand freed memory back (each block above 64 kB is
mapped by itself), so that the resident size follows the tensors. With several processes the largest counts.

    python -m benchmarks.planner_memory
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_GIVE_BACK = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_MMAP_THRESHOLD_": "65536"}
_MIB = 2**20
# hidden, layers, rows of the embedding, sequence length, micro-batch, global batch, processes, precision, recomputation
CONFIGURATIONS = [
    (256, 8, 8192, 512, 4, 8, 1, "fp32", "none"),
    (256, 8, 8192, 512, 4, 8, 1, "fp32", "selective"),
    (256, 8, 8192, 512, 4, 8, 1, "fp32", "full"),
    (512, 6, 16384, 256, 2, 8, 2, "fp32", "none"),
    (512, 6, 16384, 256, 2, 8, 2, "fp32", "full"),
    (512, 6, 16384, 256, 2, 4, 1, "fp32", "full"),
    (384, 8, 16384, 512, 2, 4, 1, "bf16", "none"),
    (384, 8, 16384, 512, 2, 8, 2, "bf16", "full"),
]


def settings(number: int, **changes: int) -> Any:
    """The recipe of a configuration, with changes to its model."""
    from train.config import TrainConfig

    hidden, layers, _, length, micro, batch, _, precision, recomputed = CONFIGURATIONS[number]
    model = {"hidden": hidden, "layers": layers, "heads": 8, "init_std": 0.02, **changes}
    return TrainConfig.model_validate({
        "model": model, "sequence_length": length, "micro_batch": micro, "global_batch": batch,
        "train_samples": 10**6, "lr": 1e-4, "min_lr": 1e-4, "warmup_samples": 0, "precision": precision,
        "activation_checkpointing": recomputed,
    })  # fmt: skip


def _step(engine: Any, config: Any, rows: int, data: int) -> None:
    import torch

    def batches() -> Iterator[tuple[Any, Any]]:
        for _ in range(config.global_batch // config.micro_batch // data):
            tokens = torch.randint(0, rows, (config.micro_batch, config.sequence_length + 1))
            yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    for group in engine.optimizer.param_groups:
        group["lr"] = 1e-4
    engine.train_batch(batches())


def _resident(name: str) -> int:
    """VmRSS (now) or VmHWM (at most) of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    sys.exit("error: this needs Linux, which tells the resident size of a process")


def measure(number: int, folder: Path) -> None:
    """One of the processes of a configuration: writes its growth to `folder`."""
    import torch

    from train.engine import build_engine
    from train.parallel.topology import connect

    torch.set_num_threads(1)
    config, small = settings(number), settings(number, hidden=64, layers=1)
    rows, processes = CONFIGURATIONS[number][2], CONFIGURATIONS[number][6]
    place = connect(config.layout(processes))
    engine = build_engine(small, 128, place)
    for _ in range(2):
        _step(engine, small, 128, processes)
    del engine
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the largest size
    engine = build_engine(config, rows, place)
    for _ in range(3):
        _step(engine, config, rows, processes)
    (folder / f"{place.rank}.json").write_text(json.dumps(_resident("VmHWM") - before))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure is not None:
        measure(chosen.measure, chosen.folder)
        return
    from train.launch import run_workers
    from train.planner.memory import largest_memory

    os.environ.update(_GIVE_BACK)
    print("| hidden | layers | rows | length x micro-batch | data parallel | precision | recomputed "
          "| predicted MiB | measured | ratio |\n|---|---|---|---|---|---|---|---|---|---|")
    for number, (hidden, layers, rows, length, micro, _, data, precision, recomputed) in enumerate(CONFIGURATIONS):
        config = settings(number)
        predicted = largest_memory(config.shape(rows), config, config.layout(data), "cpu").total
        with tempfile.TemporaryDirectory() as folder:
            command = ["benchmarks.planner_memory", "--measure", str(number), "--folder", folder]
            run_workers(data, command)
            measured = max(json.loads(path.read_text()) for path in Path(folder).iterdir())
        print(f"| {hidden} | {layers} | {rows:,} | {length} x {micro} | {data} | {precision} | {recomputed} "
              f"| {predicted / _MIB:.0f} | {measured / _MIB:.0f} | {predicted / measured:.2f} |", flush=True)


if __name__ == "__main__":
    main()
