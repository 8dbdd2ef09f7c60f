"""The cost sheet of a run: layouts that fit, the fastest first, and what the whole run takes.

`plan_run` gives facts, `as_text` prints them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from roots_pipeline.core.errors import RecipeError
from train.config import TrainConfig
from train.model.shape import Shape, checkpoint_bytes, model_flops_per_token, parameter_count
from train.parallel.layout import Layout
from train.planner.costs import Assumptions, Bill, best_interval, bill, expected_goodput
from train.planner.hardware import Hardware
from train.planner.memory import Memory, bytes_per_parameter, inference_memory, largest_memory
from train.planner.speed import StepTime, gopher_flops, step_time, utilisation

_USABLE = 0.92  # of a GPU's memory: the rest is for libraries and fragments
_GIB = 2**30
LEAST_GOODPUT = 0.01  # below it a run has no end worth naming


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout, what a process of it needs at most, and how long a step takes."""

    layout: Layout
    micro_batch: int
    memory: Memory
    time: StepTime
    fits: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """All of it; `candidates` are sorted by the time of a step, those that fit first."""

    shape: Shape
    gpus: int
    candidates: list[Candidate]
    chosen: Candidate
    steps: int
    tokens: int
    model_flops: float
    seconds: float
    goodput: float
    bill: Bill
    checkpoint: int
    save_every: int
    inference: dict[str, float]
    mfu: float
    assumed: Assumptions
    state_bytes: float  # of one parameter in one process, before activations
    paper_flops: float | None  # of a Gopher: as its paper counts them


def layouts(config: TrainConfig, vocabulary: int, gpus: int, hardware: Hardware) -> list[Candidate]:
    """Every layout of `gpus` processes that the trainer would accept, the fastest first, those that fit before others.

    Tensor parallelism stays within a node.
    """
    shape = config.shape(vocabulary)
    found = []
    for tensor in (t for t in range(1, hardware.node.gpus + 1) if gpus % t == 0):
        for pipeline in (p for p in range(1, shape.layers + 3) if gpus // tensor % p == 0):
            for micro in (1, 2, 4, 8, 16):
                settings = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "micro_batch": micro}
                try:
                    tried = TrainConfig.model_validate({**config.model_dump(), **settings})
                    tried.check_vocabulary(vocabulary)
                    layout = tried.layout(gpus)
                except (ValidationError, RecipeError):
                    continue
                memory = largest_memory(shape, tried, layout)
                fits = memory.total <= hardware.memory_gib * _GIB * _USABLE
                found.append(Candidate(layout, micro, memory, step_time(shape, tried, layout, hardware), fits))
    return sorted(found, key=lambda one: (not one.fits, one.time.total))


def plan_run(
    config: TrainConfig, vocabulary: int, gpus: int, hardware: Hardware, assumed: Assumptions | None = None
) -> Sheet:
    """Plan the run of a recipe; the fastest layout that fits is what the run is planned with.

    Raises RecipeError if no layout is possible or none fits.
    """
    assumed = assumed or Assumptions()
    hardware.peak(config.precision)
    candidates = layouts(config, vocabulary, gpus, hardware)
    if not candidates:
        raise RecipeError(
            f"{gpus} GPUs cannot be arranged for this model and batch.",
            where="--gpus",
            hint=f"Use a number whose data-parallel share divides the global batch of {config.global_batch}.",
        )
    chosen = candidates[0]
    if not chosen.fits:
        least = min(candidates, key=lambda one: one.memory.total)
        raise RecipeError(
            f"no layout fits: the smallest needs {least.memory.total / _GIB:.1f} GiB a GPU ({least.layout}).",
            where="--gpus",
            hint="Use more GPUs, larger ones, or activation_checkpointing full.",
        )
    shape, batch = config.shape(vocabulary), config.batch_size()
    steps = batch.steps(config.train_samples)
    seconds = _all_steps(config, chosen)
    size = checkpoint_bytes(parameter_count(shape), config.precision)
    save, nodes = size / (assumed.write_gbytes * 1e9), -(-gpus // hardware.node.gpus)
    mtbf = assumed.node_mtbf_hours * 3600 / nodes
    interval = best_interval(save, mtbf)
    goodput = expected_goodput(interval, save, 60 * assumed.restart_minutes, mtbf)
    if goodput < LEAST_GOODPUT:
        raise RecipeError(
            f"on {nodes} nodes something fails every {mtbf:.3g} seconds, and next to nothing of the work is kept.",
            where="--node-mtbf-hours",
            hint="It is the time between two failures of one node, thousands of hours.",
        )
    tokens = config.train_samples * config.sequence_length
    return Sheet(
        shape, gpus, candidates, chosen, steps, tokens,
        tokens * model_flops_per_token(shape, config.sequence_length), seconds, goodput,
        bill(seconds / goodput, gpus, hardware.watts, assumed), size,
        max(1, round(interval / chosen.time.total)), inference_memory(shape, config.sequence_length, 1),
        utilisation(shape, config, chosen.layout, hardware, chosen.time.total), assumed,
        bytes_per_parameter(config.precision, chosen.layout.data),
        gopher_flops(shape, config.sequence_length, tokens, embeddings=False, recomputed=True)
        if shape.kind == "gopher" else None,
    )  # fmt: skip


def _all_steps(config: TrainConfig, chosen: Candidate) -> float:
    """Seconds of all steps: small batches of a ramp keep the bubble and the exchange of a large one."""
    time, batch, position, seconds = chosen.time, config.batch_size(), 0, 0.0
    full = config.global_batch
    work = (time.compute + time.tensor + time.pipeline) / full
    fixed = time.bubble + time.data  # the bubble is as long as p - 1 micro-batches, however many there are
    while batch(position) < full and position + batch(position) <= config.train_samples:
        seconds += work * batch(position) + fixed
        position += batch(position)
    return seconds + max(0, config.train_samples - position) // full * time.total


def as_facts(sheet: Sheet, shown: int) -> dict[str, Any]:
    """The sheet for programs."""
    facts = asdict(sheet)
    facts["candidates"] = facts["candidates"][:shown]
    facts["parameters"] = parameter_count(sheet.shape)
    return facts


def as_text(sheet: Sheet, shown: int) -> str:
    """The sheet for people."""
    memory, time, shape, bill_ = sheet.chosen.memory, sheet.chosen.time, sheet.shape, sheet.bill
    rate = sheet.tokens / sheet.seconds
    paper = [f"{sheet.paper_flops:.3g} operations as its paper counts: with recomputation, without the vocabulary"
             ] if sheet.paper_flops else []  # fmt: skip
    lines = [
        f"{shape.title} of {parameter_count(shape):,} parameters, {sheet.tokens:,} tokens in {sheet.steps:,} steps, "
        f"{sheet.model_flops:.3g} operations",
        *paper,
        "",
        f"{'layout':<42}{'micro':>6}{'GiB/GPU':>9}{'s/step':>9}{'bubble':>8}  fits",
    ]
    for one in sheet.candidates[:shown]:
        lines.append(
            f"{one.layout!s:<42}{one.micro_batch:>6}{one.memory.total / _GIB:>9.1f}{one.time.total:>9.2f}"
            f"{one.time.bubble_share:>8.1%}  {'yes' if one.fits else 'no'}"
        )
    names = ("weights", "gradients", "optimizer", "activations", "loss", "update")
    parts = {name: getattr(memory, name) / _GIB for name in names}
    shares = {name: getattr(time, name) for name in ("compute", "bubble", "tensor", "pipeline", "data")}
    lines += [
        "",
        "With the first of them:",
        "  GiB of a GPU       "
        + ", ".join(f"{name} {value:.1f}" for name, value in parts.items())
        + f"; {sheet.state_bytes:.3g} bytes a parameter before activations",
        "  seconds of a step  " + ", ".join(f"{name} {value:.2f}" for name, value in shares.items()),
        f"  speed              {rate:,.0f} tokens a second, {86400 * rate:.3g} a day; {sheet.mfu:.1%} of the peak as "
        "model operations",
        f"  time               {sheet.seconds / 86400:.1f} days of steps, {bill_.days:.1f} with failures "
        f"(goodput {sheet.goodput:.1%})",
        f"  GPU-hours          {bill_.gpu_hours:,.0f}",
        f"  energy             {bill_.kwh:,.0f} kWh at rated power and a PUE of {sheet.assumed.pue}; "
        f"{bill_.tonnes_co2:.1f} t CO2 at {sheet.assumed.grams_per_kwh:g} g a kWh",
        f"  checkpoint         {sheet.checkpoint / 1e9:,.1f} GB; save every {sheet.save_every} steps (Daly: a node "
        f"fails every {sheet.assumed.node_mtbf_hours:g} hours, {sheet.assumed.write_gbytes:g} GB/s to disk)",
        f"  to use it          {sheet.inference['weights'] / 1e9:,.1f} GB of weights in 16 bits, and "
        f"{sheet.inference['cache'] / 1e9:.2f} GB of keys and values for a text of full length",
    ]
    return "\n".join(lines)
