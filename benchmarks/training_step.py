"""One training step beside Hugging Face's BloomForCausalLM with AdamW, and beside our own layers without DeepSpeed.

All train the same sizes on the same tokens in float32: forward, backward, clipping of the gradient norm, AdamW. Each
lives in a process of its own and takes its turn, so other load on the machine hits all alike:

    rootbloom      as users run it: DeepSpeed's pipeline engine with ZeRO stage 1
    bare loop      the same layers and loss in a plain loop with PyTorch's fused AdamW
    transformers   BloomForCausalLM, torch.optim.AdamW with its defaults

The share of the peak counts model FLOPs (the same for all) against the best large float32 matrix multiplication seen
between the rounds; once by the clock and once in CPU time, which other load on the machine disturbs less. Peak
memory is the largest resident size of a process that only trains, at BLOOM's vocabulary.

    python -m benchmarks.training_step [--rounds 5] [--threads 2] [--only speed|memory]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

HIDDEN, LAYERS, HEADS, LENGTH, BATCH = 512, 8, 8, 512, 4
VOCABULARY, BLOOMS_VOCABULARY = 32_000, 250_880
RATE, DECAY, BETAS, CLIP = 1e-4, 0.1, (0.9, 0.95), 1.0
OURS, BARE, THEIRS = "rootbloom", "bare loop", "transformers"


def our_step(inputs: Any, labels: Any, vocabulary: int) -> Callable[[], float]:
    from train.engine import build_engine
    from train.parallel.topology import connect

    config = _settings()
    engine = build_engine(config, vocabulary, connect(config.layout(1)))

    def step() -> float:
        for group in engine.optimizer.param_groups:
            group["lr"] = RATE
        return float(engine.train_batch(iter([(inputs, labels)])))

    return step


def bare_step(inputs: Any, labels: Any, vocabulary: int) -> Callable[[], float]:
    import torch

    from train.model.architecture import model_layers
    from train.model.layers import Execution
    from train.model.loss import vocabulary_loss
    from train.model.randomness import Randomness
    from train.optimizer import make_optimizer
    from train.parallel.tensor import TensorParallel

    alone = TensorParallel()
    specs = model_layers(_settings().shape(vocabulary), Execution(alone, Randomness()))
    model = torch.nn.Sequential(*(spec.build() for spec in specs[:-1]))  # the last one is the first one again
    optimizer = make_optimizer(model, weight_decay=DECAY, betas=BETAS, eps=1e-8)
    for group in optimizer.param_groups:
        group["lr"] = RATE

    def step() -> float:
        loss = vocabulary_loss(model(inputs), model[0].weight, labels, alone)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss)

    return step


def their_step(inputs: Any, labels: Any, vocabulary: int) -> Callable[[], float]:
    import torch
    from transformers import BloomConfig, BloomForCausalLM

    sizes = BloomConfig(vocab_size=vocabulary, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS, use_cache=False)
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


_STEPS = {OURS: our_step, BARE: bare_step, THEIRS: their_step}


def _settings() -> Any:
    from train.config import TrainConfig

    return TrainConfig.model_validate({
        "model": {"hidden": HIDDEN, "layers": LAYERS, "heads": HEADS, "init_std": 0.02},
        "sequence_length": LENGTH, "micro_batch": BATCH, "global_batch": BATCH, "train_samples": 10**6,
        "lr": RATE, "min_lr": RATE, "warmup_samples": 0, "precision": "fp32", "weight_decay": DECAY,
        "betas": BETAS, "clip": CLIP,
    })  # fmt: skip


def serve(name: str, vocabulary: int, threads: int) -> None:
    """A process of one of the three: a line in asks for one step (or the matmul peak), a line out has the result."""
    if name != THEIRS:
        from train.launch import flush_denormals, share_processor

        share_processor()
        flush_denormals()
    import torch

    torch.set_num_threads(threads)
    tokens = torch.randint(0, vocabulary, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(0))
    step = _STEPS[name](tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), vocabulary)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print; standard output is for answers
    for line in sys.stdin:
        started, used = time.perf_counter(), time.process_time()
        if line.strip() == "peak":
            answer = _matmul_peaks()
        else:
            answer = {"loss": step(), "wall": time.perf_counter() - started, "cpu": time.process_time() - used}
        answer["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(answer), file=answers, flush=True)


def _matmul_peaks(size: int = 1024, seconds: float = 1.0) -> dict[str, float]:
    """FLOP per second, and per second of CPU time, of the best large multiplications."""
    import torch

    left, right = torch.rand(size, size), torch.rand(size, size)
    wall = cpu = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started, used = time.perf_counter(), time.process_time()
        torch.mm(left, right)
        wall, cpu = min(wall, time.perf_counter() - started), min(cpu, time.process_time() - used)
    return {"wall": 2.0 * size**3 / wall, "cpu": 2.0 * size**3 / cpu}


class Runner:
    """The process that serves one of the three."""

    def __init__(self, name: str, vocabulary: int, threads: int) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.training_step"]
        command += ["--serve", name, "--vocabulary", str(vocabulary), "--threads", str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, what: str) -> dict[str, float]:
        """One "step" or the "peak"."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"error: the process for '{what}' ended")
        answer: dict[str, float] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure_speed(rounds: int, threads: int) -> None:
    """Interleaved steps at a small vocabulary."""
    from train.model.shape import Shape, model_flops_per_token

    runners = {name: Runner(name, VOCABULARY, threads) for name in _STEPS}
    losses = {name: runner.ask("step")["loss"] for name, runner in runners.items()}  # also warms up
    wall: dict[str, list[float]] = {name: [] for name in runners}
    cpu: dict[str, list[float]] = {name: [] for name in runners}
    peak = peak_cpu = 0.0
    for _ in range(rounds):
        found = runners[OURS].ask("peak")
        peak, peak_cpu = max(peak, found["wall"]), max(peak_cpu, found["cpu"])
        for name, runner in runners.items():
            answer = runner.ask("step")
            wall[name].append(answer["wall"])
            cpu[name].append(answer["cpu"])
    for runner in runners.values():
        runner.close()
    flops = model_flops_per_token(Shape(HIDDEN, LAYERS, HEADS, VOCABULARY), LENGTH) * BATCH * LENGTH
    print(
        f"hidden {HIDDEN}, {LAYERS} layers, {HEADS} heads, length {LENGTH}, batch {BATCH}, vocabulary {VOCABULARY}, "
        f"float32, {threads} threads; matmul peak {peak / 1e9:.0f} GFLOP/s, "
        f"{peak_cpu / 1e9:.0f} per second of CPU time"
    )
    for name in runners:
        best, used = min(wall[name]), min(cpu[name])
        print(
            f"{name:<13} first loss {losses[name]:.3f}  {BATCH * LENGTH / best:7.0f} tokens/s  best step {best:.2f} s, "
            f"CPU {used:.2f} s  {100 * flops / best / peak:3.0f}% of peak, "
            f"{100 * flops / used / peak_cpu:3.0f}% in CPU time"
        )
    print(
        f"rootbloom / transformers: {_ratio(wall, THEIRS, OURS):.2f} x in time, {_ratio(cpu, THEIRS, OURS):.2f} x in "
        f"CPU time\nDeepSpeed's overhead over the bare loop: {100 * (_ratio(wall, OURS, BARE) - 1):.1f}% in time, "
        f"{100 * (_ratio(cpu, OURS, BARE) - 1):.1f}% in CPU time"
    )


def _ratio(seconds: dict[str, list[float]], one: str, other: str) -> float:
    return min(seconds[one]) / min(seconds[other])


def measure_memory(threads: int) -> None:
    """Peak memory of two steps at BLOOM's vocabulary, one process after the other."""
    peaks = {}
    for name in (OURS, THEIRS):
        runner = Runner(name, BLOOMS_VOCABULARY, threads)
        peaks[name] = max(runner.ask("step")["memory"] for _ in range(2))
        runner.close()
    print(
        f"peak memory at vocabulary {BLOOMS_VOCABULARY}: rootbloom {peaks[OURS]:.2f} GiB, transformers "
        f"{peaks[THEIRS]:.2f} GiB, ratio {peaks[OURS] / peaks[THEIRS]:.2f}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--only", choices=["speed", "memory"])
    arguments.add_argument("--serve", choices=list(_STEPS), help=argparse.SUPPRESS)
    arguments.add_argument("--vocabulary", type=int, default=VOCABULARY, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.vocabulary, chosen.threads)
        return
    if chosen.only != "memory":
        measure_speed(chosen.rounds, chosen.threads)
    if chosen.only != "speed":
        measure_memory(chosen.threads)


if __name__ == "__main__":
    main()
