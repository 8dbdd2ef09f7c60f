"""Causal self-attention with Transformer-XL's relative positions (arXiv 1901.02860, section 3.3), as in Gopher.

The score of query i and key j is ((q_i + u) . k_j + (q_i + v) . W r_(i-j)) / sqrt(head size): r is a fixed sinusoid
of the distance, W, u and v are learnt, per layer. Distances have no upper bound, so a model can be used on texts
longer than those it was trained on.

Queries are first multiplied with the keys of all distances, [queries, distances], which costs as much as the usual
product. Bringing that to [queries, keys] needs no gather: see `by_key`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.model.documents import unseen_pairs
from train.model.flex import attention_by_distance, has_kernel
from train.model.plain import plain_attention
from train.model.randomness import Randomness
from train.parallel.tensor import ColumnParallelLinear, TensorParallel, cut_parameter


@lru_cache(maxsize=4)
def distance_encodings(length: int, hidden: int, device: torch.device) -> Tensor:
    """Sinusoids [length, hidden] of the distances 0 to length - 1: all sines, then all cosines, float32."""
    frequencies = 10000.0 ** -(torch.arange(0, hidden, 2, dtype=torch.float64, device=device) / hidden)
    angles = torch.arange(length, dtype=torch.float64, device=device)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), 1)[:, :hidden].float()


def by_key(by_distance: Tensor) -> Tensor:
    """From [..., query, distance], distances falling from length - 1 to 0, to [..., query, key].

    Entry (i, j) of the result is that of distance i - j; entries with j > i are meaningless. One more column in
    front makes each row one longer, so reading the same memory in rows of the old length moves every row one step
    further than the one before (Transformer-XL, appendix B).
    """
    length = by_distance.shape[-1]
    longer = F.pad(by_distance, (1, 0))
    return longer.view(*by_distance.shape[:-2], length + 1, length)[..., 1:, :]


class RelativeAttention(nn.Module):
    """Attention of the heads of this process. W is cut by heads like the queries' matrix, and so are u and v."""

    def __init__(
        self,
        name: str,
        hidden: int,
        heads: int,
        *,
        std: float,
        seed: int,
        dropout: float,
        parallel: TensorParallel,
        randomness: Randomness,
    ) -> None:
        super().__init__()
        self.name, self.hidden, self.dropout, self.randomness = name, hidden, dropout, randomness
        self.first, self.count = parallel.share(heads)
        self.positions = ColumnParallelLinear(
            f"{name}.positions", hidden, hidden, std=std, seed=seed, parallel=parallel, bias=False
        )
        self.content_bias = cut_parameter(torch.zeros(parallel.share(hidden)[1]), 0)
        self.position_bias = cut_parameter(torch.zeros(parallel.share(hidden)[1]), 0)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, starts: Tensor | None = None) -> Tensor:
        """[batch, heads of this process, length, head size] three times; returns the same shape.

        `starts` [batch, length] keeps attention within documents (see `train.model.documents`).
        """
        length, size = query.shape[2:]
        content, position = (
            query + bias.view(self.count, 1, size).to(query.dtype) for bias in (self.content_bias, self.position_bias)
        )
        distances = distance_encodings(length, self.hidden, query.device).to(query.dtype)
        keys = F.linear(distances, self.positions.weight).view(length, self.count, size).transpose(0, 1)
        by_distance = position @ keys.flip(1).transpose(1, 2) / math.sqrt(size)
        rate = self.dropout if self.training else 0.0
        if has_kernel(query) and rate == 0.0:
            return attention_by_distance(content, key, value, by_distance, starts)
        bias = by_key(by_distance).masked_fill(unseen_pairs(length, query.device, starts), -math.inf)
        return plain_attention(content, key, value, bias, rate, self.name, self.randomness, self.first)
