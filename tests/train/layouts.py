"""The same training runs in many layouts of processes: their losses and gradient norms, beside those of one process.

    python -m tests.train.layouts [--short] FOLDER

prints a table, writes FOLDER/layouts.json ("model layout variant" -> losses and norms of the steps, the loss of an
evaluation at the end, and parameters whose copies differ then), and ends with 1 if a run is not within its bounds.
Dropout is on and clipping active throughout. With --short only what a test run has time for.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
import torch.distributed as dist
import xxhash

from tests.train.scenario import VOCABULARY, MadeUpText, PackedText, settings
from tests.train.worlds import run_world
from train import engine as engine_module
from train.config import TrainConfig
from train.data import document_starts, labels_of_micro_batch, micro_batches
from train.engine import build_engine
from train.parallel.backend import deepspeed
from train.parallel.topology import Place, connect

# data, tensor, pipeline
LAYOUTS = {
    "1x1x1": (1, 1, 1),
    "TP2": (1, 2, 1),
    "PP2": (1, 1, 2),
    "DP2": (2, 1, 1),
    "PP2xTP2": (1, 2, 2),
    "PP4": (1, 1, 4),
    "2x2x2": (2, 2, 2),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings, and how far a run may be from the one of one process: losses absolutely, norms relatively.

    With `packed` its samples hold padding, by amounts that differ between micro-batches.
    """

    changes: dict[str, Any]
    loss: float = 1e-5
    norm: float = 1e-5
    beside: str = "plain"  # the variant of one process that it is compared with
    packed: bool = False


VARIANTS = {
    "plain": Variant({}),
    "full": Variant({"activation_checkpointing": "full"}),
    "selective": Variant({"activation_checkpointing": "selective"}),
    "documents": Variant({"attention_within_documents": True}, beside="documents"),
    "documents_full": Variant(
        {"attention_within_documents": True, "activation_checkpointing": "full"}, beside="documents"
    ),
    "packed": Variant({"attention_within_documents": True}, beside="packed", packed=True),
    "packed_singly": Variant({"attention_within_documents": True, "micro_batch": 1}, beside="packed", packed=True),
    "packed_sequence": Variant(
        {"attention_within_documents": True, "sequence_parallel": True}, beside="packed", packed=True
    ),
    "sequence": Variant({"sequence_parallel": True}),
    "sequence_full": Variant({"sequence_parallel": True, "activation_checkpointing": "full"}),
    # Beside the run in float32: bfloat16 has eight bits, float16 eleven.
    "bf16": Variant({"precision": "bf16"}, loss=4e-3, norm=2e-2),
    "fp16": Variant({"precision": "fp16"}, loss=1e-3, norm=1e-2),
    "stochastic": Variant({"precision": "bf16-stochastic"}, loss=8e-3, norm=2e-2),
}
STEPS, SHORT_STEPS, BATCH = 20, 6, 8
# The variants that are run in each layout, and those of --short.
LONG = {
    "1x1x1": ("plain", "full", "selective", "documents", "packed", "packed_singly", "bf16", "fp16", "stochastic"),
    "TP2": ("plain", "full", "selective", "documents", "packed", "sequence"),
    "PP2": ("plain", "full", "selective", "documents", "documents_full", "packed", "packed_singly", "bf16"),
    "DP2": ("plain", "full", "packed", "packed_singly"),
    "PP2xTP2": ("plain", "full", "packed_sequence", "sequence"),
    "PP4": ("plain", "full", "packed"),
    "2x2x2": ("plain", "full", "documents", "packed", "packed_sequence", "sequence_full", "bf16", "fp16", "stochastic"),
}
SHORT = {
    "1x1x1": ("plain", "documents", "packed", "bf16"),
    "TP2": ("selective", "packed"),
    "PP2": ("full", "documents_full", "packed", "bf16"),
    "DP2": ("documents", "packed_singly"),
    "2x2x2": ("sequence_full", "packed_sequence", "stochastic"),
}


def config(model: str, layout: str, variant: str, steps: int) -> TrainConfig:
    """A run of six layers in this layout."""
    _, tensor, pipeline = LAYOUTS[layout]
    return settings(
        model={"kind": model, "hidden": 32, "layers": 6, "heads": 4, "init_std": 0.05},
        steps=steps,
        global_batch=BATCH,
        dropout=0.1,
        clip=0.5,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        **VARIANTS[variant].changes,
    )


def train(config: TrainConfig, processes: int, packed: bool) -> dict[str, Any]:
    """Loss and gradient norm (before clipping) of each step, the loss of an evaluation of the samples of the first two
    steps, and the parameters whose copies have drifted apart."""
    place = connect(config.layout(processes))
    engine = build_engine(config, VOCABULARY, place)
    text, rate, found = (PackedText if packed else MadeUpText)(config.sequence_length), config.learning_rate(), []
    starts_of = document_starts(text, config.sequence_length) if config.attention_within_documents else None

    def begin(numbers: Any) -> Any:
        engine.module.begin_step(numbers, starts_of, labels_of_micro_batch(text, numbers, config.micro_batch))
        data = (place.data_rank, place.layout.data)
        return micro_batches(text, numbers, config.micro_batch, *data) if place.reads_data else None

    for samples in range(0, config.train_samples, BATCH):
        for group in engine.optimizer.param_groups:
            group["lr"] = rate(samples)
        batches = begin(np.arange(samples, samples + BATCH))
        found.append((float(engine.train_batch(batches)), float(engine.get_global_grad_norm())))
    count = 2 * BATCH // (config.micro_batch * place.layout.data)
    evaluation = float(engine.eval_batch(begin(np.arange(2 * BATCH)), num_micro_batches=count))
    drifted = names_of_drifted_copies(engine.module, place)
    engine.destroy()
    return {"steps": found, "evaluation": evaluation, "drifted": drifted}


def names_of_drifted_copies(model: Any, place: Place) -> list[str]:
    """Parameters that are not the same, bit for bit, in all processes that hold the same part of them.

    In BLOOM's run the LayerNorms of tensor-parallel processes and the two copies of the tied matrix went apart.
    """
    mine = {}
    for own, parameter in model.named_parameters():
        part = place.tensor.rank if hasattr(parameter, "partition_dim") else 0
        mine[own, part] = xxhash.xxh3_64_hexdigest(parameter.detach().float().numpy().tobytes())
    everyone: list[Any] = [None] * place.layout.processes
    dist.all_gather_object(everyone, mine)
    values: dict[tuple[str, int], set[str]] = {}
    for theirs in everyone:
        for key, value in theirs.items():
            values.setdefault(key, set()).add(value)
    return sorted({own for (own, _), different in values.items() if len(different) > 1})


def differences(found: Mapping[str, Any], alone: Mapping[str, Any]) -> tuple[float, float]:
    """Largest absolute difference of losses, that of the evaluation too, and largest relative one of norms."""
    pairs = list(zip(found["steps"], alone["steps"], strict=True))
    losses = [(a[0], b[0]) for a, b in pairs] + [(found["evaluation"], alone["evaluation"])]
    return max(abs(a - b) for a, b in losses), max(abs(a[1] / b[1] - 1) for a, b in pairs)


def run(folder: Path, *, short: bool) -> Iterator[dict[str, Any]]:
    """The chosen runs of one, two, four and eight processes, "model layout variant" -> what `train` found."""
    torch.set_num_threads(1)
    # PyTorch can compute in float16 on a CPU, only so slowly that we and DeepSpeed refuse to train in it.
    engine_module.check_precision = lambda *_: None  # type: ignore[assignment]
    deepspeed.accelerator.get_accelerator().is_fp16_supported = lambda: True
    steps = SHORT_STEPS if short else STEPS
    for processes in (1, 2, 4, 8):
        cases = [
            (model, layout, variant)
            for model, layout in product(("bloom", "gopher"), LAYOUTS)
            if math.prod(LAYOUTS[layout]) == processes
            for variant in (SHORT if short else LONG).get(layout, ())
        ]
        if not cases:
            continue

        def work(cases: list[tuple[str, str, str]] = cases, processes: int = processes) -> dict[str, Any]:
            found = {
                " ".join(case): train(config(*case, steps), processes, VARIANTS[case[2]].packed) for case in cases
            }
            dist.barrier()
            dist.destroy_process_group()
            return found

        yield run_world(processes, work, folder)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--short", action="store_true")
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    wrong = 0
    for world in run(options.folder, short=options.short):
        results |= world
        for name, found in world.items():
            model, _, variant = name.split()
            bounds, steps = VARIANTS[variant], found["steps"]
            loss, norm = differences(found, results[f"{model} 1x1x1 {bounds.beside}"])
            fits = loss <= bounds.loss and norm <= bounds.norm and not found["drifted"]
            wrong += not fits
            print(
                f"{name:<30} loss {steps[0][0]:.6f} to {steps[-1][0]:.6f}  largest differences: loss {loss:.1e}, "
                f"norm {norm:.1e}{'' if fits else '  WRONG'} {' '.join(found['drifted'])}",
                flush=True,
            )
    (options.folder / "layouts.json").write_bytes(orjson.dumps(results))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
