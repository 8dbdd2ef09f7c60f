"""The two normalisations: LayerNorm of BLOOM, RMSNorm of Gopher.

Their parameters are replicated over tensor-parallel processes. With sequence parallelism each process normalises
only its part of the positions, so their gradients are summed over the processes. In the middle of a block the sum of
hidden states and attention and its normalisation are one chain, which a GPU computes in one kernel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.model.compiled import compiled_on_gpu
from train.model.shape import Shape
from train.parallel.tensor import TensorParallel, summed_gradient


class LayerNorm(nn.LayerNorm):
    """(x - mean) / standard deviation * weight + bias over the last axis."""

    def __init__(self, hidden: int, epsilon: float, parallel: TensorParallel) -> None:
        super().__init__(hidden, epsilon)
        self.parallel = parallel

    def forward(self, hidden: Tensor) -> Tensor:
        weight, bias = (summed_gradient(parameter, self.parallel) for parameter in (self.weight, self.bias))
        return F.layer_norm(hidden, self.normalized_shape, weight, bias, self.eps)

    def after_sum(self, hidden: Tensor, branch: Tensor) -> tuple[Tensor, Tensor]:
        """hidden + branch, and its normalisation."""
        weight, bias = (summed_gradient(parameter, self.parallel) for parameter in (self.weight, self.bias))
        return sum_and_layer_norm(hidden, branch, weight, bias, self.eps)


class RMSNorm(nn.Module):
    """x / root mean square * weight over the last axis (arXiv 1910.07467, equation 4); no mean, no bias."""

    def __init__(self, hidden: int, epsilon: float, parallel: TensorParallel) -> None:
        super().__init__()
        self.epsilon, self.parallel = epsilon, parallel
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, hidden: Tensor) -> Tensor:
        weight = summed_gradient(self.weight, self.parallel)
        return F.rms_norm(hidden, weight.shape, weight, self.epsilon)

    def after_sum(self, hidden: Tensor, branch: Tensor) -> tuple[Tensor, Tensor]:
        """hidden + branch, and its normalisation."""
        return sum_and_rms_norm(hidden, branch, summed_gradient(self.weight, self.parallel), self.epsilon)


@compiled_on_gpu
def sum_and_layer_norm(
    hidden: Tensor, branch: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """hidden + branch, and its LayerNorm."""
    total = hidden + branch
    return total, F.layer_norm(total, weight.shape, weight, bias, epsilon)


@compiled_on_gpu
def sum_and_rms_norm(hidden: Tensor, branch: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """hidden + branch, and its RMSNorm."""
    total = hidden + branch
    return total, F.rms_norm(total, weight.shape, weight, epsilon)


def make_norm(shape: Shape, parallel: TensorParallel) -> LayerNorm | RMSNorm:
    """The normalisation of this kind of model."""
    kind = LayerNorm if shape.kind == "bloom" else RMSNorm
    return kind(shape.hidden, shape.epsilon, parallel)
