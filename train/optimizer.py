"""AdamW as BLOOM used it: weight decay on matrices, none on biases and LayerNorms.

Groups are chosen by the number of dimensions, not by the layer's class: BLOOM's own test for the class
missed the LayerNorm after the embedding, which then decayed until a restart made the loss jump.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups, always in this order: matrices (decayed), vectors (biases and LayerNorms, not decayed)."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in trained if parameter.ndim <= 1], "weight_decay": 0.0},
    ]


def make_optimizer(
    model: nn.Module, *, weight_decay: float, betas: tuple[float, float], eps: float
) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW (arXiv 1711.05101); the loop sets the learning rate before each step."""
    groups = parameter_groups(model, weight_decay)
    return torch.optim.AdamW(groups, lr=0.0, betas=betas, eps=eps, fused=True)
