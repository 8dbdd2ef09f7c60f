"""The share of a step in which pipeline stages wait, in a real run, beside (p - 1) / (m + p - 1).

Two stages of equal work, one process with one thread each, train steps of 2, 4 and 8 micro-batches. Every instruction
of DeepSpeed's schedule (forward, backward, send, receive, load) is timed in both processes. A stage is busy in its
passes; a step lasts from the first stage's first pass to its last one, without exchange of gradients and optimizer.

    wall clock   needs a machine that does nothing else: of all steps the shortest one is shown
    CPU clock    each process's clock runs only while it computes; what is received is there at the sender's time or at
                 the receiver's, whichever is later. Other programs do not count; the order of work and who waits for
                 whom are those of the run. Each instruction counts with its median over the steps.

    python -m benchmarks.pipeline_bubble [--steps 12]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

STAGES, MICRO_BATCHES = 2, (2, 4, 8)
_ROWS, _LENGTH, _MICRO = 64, 256, 4
_PASSES = ("ForwardPass", "BackwardPass")
_TIMED = (*_PASSES, "Send", "Recv", "Load")


def _settings(micro_batches: int) -> Any:
    from train.config import TrainConfig

    return TrainConfig.model_validate({
        "model": {"hidden": 256, "layers": 6, "heads": 4, "init_std": 0.02}, "sequence_length": _LENGTH,
        "micro_batch": _MICRO, "global_batch": _MICRO * micro_batches, "train_samples": 10**6, "lr": 1e-4,
        "min_lr": 1e-4, "warmup_samples": 0, "precision": "fp32", "pipeline_parallel": STAGES,
    })  # fmt: skip


def serve(micro_batches: int, steps: int, folder: Path) -> None:
    """One stage: writes CPU seconds of work, beginning and end of each step to `folder`."""
    import torch

    from train.engine import build_engine
    from train.parallel.topology import connect

    torch.set_num_threads(1)
    config = _settings(micro_batches)
    place = connect(config.layout(STAGES))
    engine = build_engine(config, _ROWS, place)
    done: list[tuple[str, float, float, float]] = []

    def timed(name: str, run: Callable[..., None]) -> Callable[..., None]:
        def measured(self: Any, *arguments: Any, **more: Any) -> None:
            began, used = time.monotonic(), time.thread_time()
            run(self, *arguments, **more)
            done.append((name, time.thread_time() - used, began, time.monotonic()))

        return measured

    kinds = engine._INSTRUCTION_MAP
    engine._INSTRUCTION_MAP = {kind: timed(kind.__name__, run) for kind, run in kinds.items()}
    random = torch.Generator().manual_seed(0)
    batches = [torch.randint(0, _ROWS, (_MICRO, _LENGTH + 1), generator=random) for _ in range(micro_batches)]
    found = []
    for _ in range(steps + 2):
        done.clear()
        engine.train_batch(iter([(one[:, :-1].contiguous(), one[:, 1:].contiguous()) for one in batches]))
        found.append([one for one in done if one[0].startswith(_TIMED)])
    (folder / f"{place.stage}.json").write_text(json.dumps(found[2:]))  # the first ones also start everything


def _wall_idle(step: tuple[Any, ...]) -> tuple[float, float]:
    """Seconds of a step by the clock, and the idle share."""
    passes = [one for one in step[0] if one[0] in _PASSES]
    span = passes[-1][3] - passes[0][2]
    return span, 1 - _busy(step) / STAGES / span


def _typical(same: tuple[Any, ...]) -> tuple[str, float]:
    """One instruction of the schedule, as often as there are steps: its name, and its median CPU time."""
    return same[0][0], median(one[1] for one in same)


def _busy(step: tuple[Any, ...]) -> float:
    return float(sum(one[1] for stage in step for one in stage if one[0] in _PASSES))


def _cpu_idle(step: tuple[Any, ...]) -> float:
    """The idle share of a step by the processes' CPU clocks."""
    clocks, places = [0.0, 0.0], [0, 0]
    sent: dict[str, list[float]] = {"Activation": [], "Grad": []}
    received = {"Activation": 0, "Grad": 0}
    first = last = 0.0
    while any(place < len(stage) for place, stage in zip(places, step, strict=True)):
        for number, stage in enumerate(step):
            while places[number] < len(stage):
                kind, used = stage[places[number]][:2]
                what = kind[4:]
                if kind.startswith("Recv"):
                    if received[what] == len(sent[what]):
                        break  # the other process has not sent it yet
                    clocks[number] = max(clocks[number], sent[what][received[what]])
                    received[what] += 1
                first = clocks[0] if number == 0 and kind in _PASSES and not first else first
                clocks[number] += used
                if kind.startswith("Send"):
                    sent[what].append(clocks[number])
                last = clocks[0] if number == 0 and kind in _PASSES else last
                places[number] += 1
    return 1 - _busy(step) / STAGES / (last - first)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=12)
    arguments.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.serve is not None:
        serve(chosen.serve, chosen.steps, chosen.folder)
        return
    from train.launch import run_workers
    from train.planner.speed import bubble_share

    print("| micro-batches | predicted | CPU clock | ratio | wall clock | busy seconds a stage |")
    print("|---|---|---|---|---|---|")
    for micro_batches in MICRO_BATCHES:
        with tempfile.TemporaryDirectory() as folder:
            command = ["benchmarks.pipeline_bubble", "--serve", str(micro_batches), "--steps", str(chosen.steps)]
            run_workers(STAGES, [*command, "--folder", folder])
            stages = [json.loads(Path(folder, f"{stage}.json").read_text()) for stage in range(STAGES)]
        steps = list(zip(*stages, strict=True))
        typical = tuple([_typical(instructions) for instructions in zip(*stage, strict=True)] for stage in stages)
        idle, predicted = _cpu_idle(typical), bubble_share(STAGES, micro_batches)
        print(f"| {micro_batches} | {predicted:.1%} | {idle:.1%} | {predicted / idle:.2f} "
              f"| {min(_wall_idle(step) for step in steps)[1]:.1%} | {_busy(typical) / STAGES:.2f} |",
              flush=True)


if __name__ == "__main__":
    main()
