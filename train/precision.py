"""The precisions of a run, and what DeepSpeed must be told for each.

fp32             everything in float32
bf16             parameters and activations in bfloat16; float32 master weights and moments, sharded over data-parallel
                 processes, and float32 sums of the micro-batches' gradients: BLOOM-176B
fp16             float16 with dynamic loss scaling, float32 master weights and moments: the small BLOOMs; needs a GPU
bf16-stochastic  as bf16, but after each step the master weights are rounded to bfloat16 at random, so that they hold
                 nothing that the parameters do not: Gopher (see `train.optimizer`)
"""

from __future__ import annotations

from typing import Any

import torch

from roots_pipeline.core.errors import TrainingError
from train.config import Precision

# The scaler of the small BLOOMs' scripts: it starts at 2^12, doubles after 500 good steps, forgives one bad step and
# then halves at each. (How many it forgives is from memory of the scripts.)
_LOSS_SCALING = {
    "enabled": True,
    "loss_scale": 0,
    "initial_scale_power": 12,
    "loss_scale_window": 500,
    "hysteresis": 2,
    "min_loss_scale": 1,
}


def precision_settings(precision: Precision) -> dict[str, Any]:
    """DeepSpeed's settings for a precision."""
    if precision == "fp32":
        return {}
    if precision == "fp16":
        return {"fp16": _LOSS_SCALING}
    # Without immediate updates DeepSpeed 0.19 gives wrong gradients as soon as there are two pipeline stages.
    settings: dict[str, Any] = {
        "bf16": {"enabled": True, "immediate_grad_update": True},
        "data_types": {"grad_accum_dtype": "fp32"},
    }
    if precision == "bf16-stochastic":
        settings["zero_allow_untested_optimizer"] = True  # DeepSpeed's list has no optimizers but its own and PyTorch's
    return settings


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise TrainingError if the processor cannot train in this precision."""
    if precision == "fp16" and device.type == "cpu":
        raise TrainingError("fp16 needs a GPU, and none was found.", hint="Use train.precision bf16 or fp32 here.")


def skipped_step(precision: Precision, engine: Any) -> bool:
    """Whether the last step overflowed float16 and was left out, which lowers the loss scale and is no failure."""
    return precision == "fp16" and bool(engine.optimizer.overflow)
