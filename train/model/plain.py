"""Attention step by step, for what the fused kernels do not offer.

They take no dropout mask of ours and no bias that gradients flow into on a CPU. This holds the weights of all pairs of
positions, [batch, heads, length, length].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from train.model.randomness import Randomness


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, rate: float, name: str, randomness: Randomness, first: int
) -> Tensor:
    """softmax(q k^T / sqrt(head size) + bias) v step by step, with dropout of the weights; softmax in float32.

    query, key, value [batch, heads, length, head size], the heads being `first` and following; `bias` must spread to
    [batch, heads, length, length] and be -inf wherever a query must not look.
    """
    # In bfloat16 the sum of a score and ALiBi's bias of a late position would be rounded to a multiple of 8.
    scores = (query @ key.transpose(-1, -2)).float() / math.sqrt(query.shape[-1]) + bias
    weights = torch.softmax(scores, -1).to(value.dtype)
    return randomness.drop_by_head(weights, rate, name, first=first) @ value
