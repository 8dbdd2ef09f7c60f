"""AdamW as BLOOM used it: weight decay on matrices, none on biases and LayerNorms.

Groups are chosen by the number of dimensions, not by the layer's class: BLOOM's own test for the class
missed the LayerNorm after the embedding, which then decayed until a restart made the loss jump.

Gopher's largest models kept no weights but those in bfloat16. An update below half of a step of bfloat16 would then
be lost for ever; rounded at random, up as often as it is closer to up, it survives on average.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from train.model.architecture import TIED, published_name
from train.model.randomness import bits_at, name_key
from train.parallel.pipeline import ModelPipeline
from train.parallel.tensor import TensorParallel

_ROUNDED_AT_ONCE = 1 << 24  # bounds the memory of the random numbers


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups, always in this order: matrices (decayed), vectors (biases and norms, not decayed)."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in trained if parameter.ndim <= 1], "weight_decay": 0.0},
    ]


def make_optimizer(
    model: nn.Module,
    *,
    weight_decay: float,
    betas: tuple[float, float],
    eps: float,
    rounding_seed: int | None = None,
) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW (arXiv 1711.05101); the loop sets the learning rate before each step.

    With `rounding_seed` weights are rounded to bfloat16 at random after each step; call `watch` before the first.
    Without weight decay this is plain Adam.
    """
    groups = parameter_groups(model, weight_decay)
    if rounding_seed is None:
        return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=eps, fused=True)
    return StochasticAdamW(groups, rounding_seed, lr=0.0, betas=betas, eps=eps, fused=True)


class StochasticAdamW(torch.optim.AdamW):
    """AdamW on DeepSpeed's float32 partitions that leaves values of bfloat16 in them.

    The noise of a weight follows from the seed, the step, the parameter's name and the weight's place in the whole
    matrix: it is the same in every layout, and for both copies of the tied embedding. What is kept for good are the
    bfloat16 weights and two float32 moments (10 bytes a weight); the float32 partition that DeepSpeed adds is
    4 bytes a weight, sharded over data-parallel processes like the moments.
    """

    def __init__(self, groups: list[dict[str, Any]], seed: int, **options: Any) -> None:
        super().__init__(groups, **options)
        self._seed = seed
        self._model: ModelPipeline | None = None

    def watch(self, model: ModelPipeline) -> None:
        """Round the weights of this model, whose parameters DeepSpeed has just taken over."""
        self._model = model

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update, then the rounding."""
        loss: float | None = super().step(closure)
        if self._model is not None:
            for own, parameter in self._model.named_parameters():
                self._round(_published(own, self._model.shape.layers), parameter, self._model.parallel)
        return loss

    def _round(self, name: str, parameter: Any, parallel: TensorParallel) -> None:
        held = parameter._hp_mapping  # the piece of this parameter in this process's partition, if any
        if held is None:
            return
        partition = self.param_groups[held.param_group_index]["params"][0]
        key = name_key(self._seed, f"{name}:{int(self.state[partition]['step'])}")
        first, count = held.lp_fragment_address.start, held.lp_fragment_address.numel
        for start in range(0, count, _ROUNDED_AT_ONCE):
            part = held.hp_fragment[start : start + _ROUNDED_AT_ONCE]
            own = torch.arange(first + start, first + start + len(part), device=part.device)
            part.copy_(rounded(part, bits_at(key, whole_numbers(own, parameter, parallel))))


def _published(own: str, layers: int) -> str:
    head, rest = own.split(".", 1)
    return f"{TIED}.weight" if head == "tied_modules" else published_name(int(head), layers, rest)


def whole_numbers(own: Tensor, parameter: Tensor, parallel: TensorParallel) -> Tensor:
    """The numbers, in the whole parameter, of the values numbered `own` in this process's part of it."""
    dim = getattr(parameter, "partition_dim", None)
    if dim is None:
        return own
    if dim == 0:
        return own + parallel.rank * parameter.numel()
    columns = parameter.shape[1]
    return own // columns * (columns * parallel.size) + parallel.rank * columns + own % columns


def rounded(values: Tensor, noise: Tensor) -> Tensor:
    """float32 values of which only the upper 16 bits remain, rounded up if `noise` (0 ... 65,535) says so.

    The probability of rounding up is the dropped part's share of a step of bfloat16, so the mean is kept. Infinities
    and NaN stay as they are.
    """
    bits = ((values.view(torch.int32) + noise) & -65536).view(torch.float32)
    return torch.where(values.isfinite(), bits, values)
