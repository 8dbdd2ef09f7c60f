"""Model FLOP utilisation of one GPU: a BLOOM of 1.3 billion parameters beside its vocabulary, in bf16 with AdamW.

Runs what users run: DeepSpeed's pipeline engine with ZeRO stage 1, float32 master weights, moments and gradient sums,
clipping, no recomputation. Counted are model FLOPs, the vocabulary's included (the formula is printed), against the
dense bf16 peak of the data sheet. The weights are drawn on the GPU, which takes no part in what is measured.

    python -m tests.gpu.utilisation [--micro-batch 8] [--json FILE] [--profile FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from train.config import TrainConfig
from train.engine import build_engine
from train.model.shape import model_flops_per_token, parameter_count
from train.monitor import matmul_peak
from train.parallel import tensor as matrices
from train.parallel.topology import connect


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, value in (
        ("hidden", 2048), ("layers", 24), ("heads", 16), ("vocabulary", 250_880), ("length", 2048),
        ("micro-batch", 8), ("accumulate", 4), ("steps", 6),
    ):  # fmt: skip
        arguments.add_argument(f"--{name}", type=int, default=value)
    arguments.add_argument("--peak", type=float, default=989.0, help="data sheet: dense bf16 TFLOP/s (H100, H200)")
    arguments.add_argument("--json", type=Path, help="write the result there")
    arguments.add_argument("--profile", type=Path, help="write the kernels of one more step there, by time")
    chosen = arguments.parse_args()
    if not torch.cuda.is_available():
        print("UTILISATION NOT MEASURED: no GPU here")
        return
    result = measure(chosen)
    text = json.dumps(result, indent=1)
    print(text)
    if chosen.json:
        chosen.json.write_text(text)
    print(f"UTILISATION {result['utilisation']:.1%} of {chosen.peak:.0f} TFLOP/s (goal 50%)")


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Train a few steps and describe the median one."""
    matrices.initial_shard = _drawn_on_gpu
    config = TrainConfig.model_validate({
        "model": {"hidden": chosen.hidden, "layers": chosen.layers, "heads": chosen.heads, "init_std": 0.02},
        "sequence_length": chosen.length, "micro_batch": chosen.micro_batch,
        "global_batch": chosen.micro_batch * chosen.accumulate, "train_samples": 10**6,
        "lr": 1e-4, "min_lr": 1e-4, "warmup_samples": 0, "precision": "bf16",
    })  # fmt: skip
    place = connect(config.layout(1))
    started = time.perf_counter()
    engine = build_engine(config, chosen.vocabulary, place)
    for group in engine.optimizer.param_groups:
        group["lr"] = 1e-4
    data = _batches(chosen, place.device)
    first = float(engine.train_batch(data))
    torch.cuda.synchronize()
    warm, seconds = time.perf_counter() - started, []
    torch.cuda.reset_peak_memory_stats()
    for _ in range(chosen.steps):
        started = time.perf_counter()
        last = float(engine.train_batch(data))
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    if chosen.profile:
        _profile(engine, data, chosen.profile)
    shape = config.shape(chosen.vocabulary)
    per_token, tokens = model_flops_per_token(shape, chosen.length), config.global_batch * chosen.length
    speed = tokens / statistics.median(seconds)
    h = chosen.hidden
    return {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
        "model": {"hidden": h, "layers": chosen.layers, "heads": chosen.heads, "vocabulary": chosen.vocabulary},
        "parameters": parameter_count(shape),
        "parameters_without_vocabulary": parameter_count(shape) - chosen.vocabulary * h,
        "length": chosen.length, "micro_batch": chosen.micro_batch, "global_batch": config.global_batch,
        "flops_per_token": f"72 L h^2 + 12 L h s + 6 V h = {per_token:.4g}",
        "tokens_per_second": speed, "model_tflops": speed * per_token / 1e12,
        "utilisation": speed * per_token / 1e12 / chosen.peak,
        "measured_matmul_tflops": matmul_peak(place.device, "bf16") / 1e12,
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
        "step_seconds": seconds, "seconds_to_first_step": warm, "first_loss": first, "last_loss": last,
    }  # fmt: skip


def _drawn_on_gpu(
    name: str, shape: tuple[int, int], std: float, seed: int, parallel: matrices.TensorParallel, dim: int
) -> Tensor:
    return torch.empty(shape, device="cuda").normal_(0.0, std)


def _batches(chosen: argparse.Namespace, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        tokens = torch.randint(0, chosen.vocabulary, (chosen.micro_batch, chosen.length + 1), device=device)
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def _profile(engine: Any, data: Iterator[tuple[Tensor, Tensor]], path: Path) -> None:
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as trace:
        engine.train_batch(data)
        torch.cuda.synchronize()
    table = trace.key_averages().table(sort_by="self_cuda_time_total", row_limit=60, max_name_column_width=90)
    path.write_text(table)


if __name__ == "__main__":
    main()
