"""One training step beside Hugging Face's BloomForCausalLM with AdamW, interleaved in one process.

Both train the same sizes on the same tokens in float32: forward, backward, clipping of the gradient norm, AdamW.
Ours runs as users run it, through DeepSpeed. The share of the peak counts model FLOPs (the same for both) against the
best large float32 matrix multiplication seen between the rounds, so other load on the machine hits all alike.

    python -m benchmarks.training_step [--rounds 5] [--threads 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import BloomConfig, BloomForCausalLM

from train.config import TrainConfig
from train.engine import build_engine
from train.model.shape import Shape, model_flops_per_token
from train.monitor import matmul_peak
from train.parallel.topology import connect

VOCABULARY, HIDDEN, LAYERS, HEADS, LENGTH, BATCH = 32_000, 512, 8, 8, 512, 4
RATE, DECAY, BETAS, CLIP = 1e-4, 0.1, (0.9, 0.95), 1.0


def our_step(inputs: torch.Tensor, labels: torch.Tensor) -> Callable[[], float]:
    config = TrainConfig.model_validate({
        "model": {"hidden": HIDDEN, "layers": LAYERS, "heads": HEADS, "init_std": 0.02},
        "sequence_length": LENGTH, "micro_batch": BATCH, "global_batch": BATCH, "train_samples": 10**6,
        "lr": RATE, "min_lr": RATE, "warmup_samples": 0, "precision": "fp32", "weight_decay": DECAY,
        "betas": BETAS, "clip": CLIP,
    })  # fmt: skip
    engine = build_engine(config, VOCABULARY, connect(config.layout(1)))

    def step() -> float:
        for group in engine.optimizer.param_groups:
            group["lr"] = RATE
        return float(engine.train_batch(iter([(inputs, labels)])))

    return step


def their_step(inputs: torch.Tensor, labels: torch.Tensor) -> Callable[[], float]:
    sizes = BloomConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, use_cache=False)
    model = BloomForCausalLM(sizes).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=DECAY)
    # Hugging Face shifts the labels itself; the extra last token makes both predict the same LENGTH tokens.
    tokens = torch.cat((inputs, labels[:, -1:]), 1)

    def step() -> float:
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss)

    return step


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=2)
    chosen = arguments.parse_args()
    torch.set_num_threads(chosen.threads)
    random = np.random.default_rng(0)
    tokens = torch.from_numpy(random.integers(0, VOCABULARY, (BATCH, LENGTH + 1)))
    inputs, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    steps = {"rootbloom": our_step(inputs, labels), "transformers": their_step(inputs, labels)}
    losses = {name: step() for name, step in steps.items()}  # also warms up
    wall: dict[str, list[float]] = {name: [] for name in steps}
    cpu: dict[str, list[float]] = {name: [] for name in steps}
    peak = 0.0
    for _ in range(chosen.rounds):
        peak = max(peak, matmul_peak(inputs.device))
        for name, step in steps.items():
            started, used = time.perf_counter(), time.process_time()
            step()
            wall[name].append(time.perf_counter() - started)
            cpu[name].append(time.process_time() - used)
    flops = model_flops_per_token(Shape(HIDDEN, LAYERS, HEADS, VOCABULARY), LENGTH) * BATCH * LENGTH
    print(
        f"hidden {HIDDEN}, {LAYERS} layers, {HEADS} heads, length {LENGTH}, batch {BATCH}, vocabulary {VOCABULARY}, "
        f"float32, {chosen.threads} threads; matmul peak {peak / 1e9:.0f} GFLOP/s"
    )
    for name in steps:
        best = min(wall[name])
        print(
            f"{name:<13} first loss {losses[name]:.3f}  {BATCH * LENGTH / best:7.0f} tokens/s  "
            f"{100 * flops / best / peak:3.0f}% of peak  best step {best:.2f} s, CPU {min(cpu[name]):.2f} s"
        )
    print(
        f"rootbloom / transformers: {min(wall['transformers']) / min(wall['rootbloom']):.2f} x in time, "
        f"{min(cpu['transformers']) / min(cpu['rootbloom']):.2f} x in CPU time"
    )


if __name__ == "__main__":
    main()
