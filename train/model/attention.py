"""Causal self-attention with ALiBi (arXiv 2108.12409): each head adds a slope times the key's position.

BLOOM adds slope * key index, not -slope * distance: under the softmax of one query both are the same, but
the table of biases then has one row per head and is stored in the precision of the run, as it was for BLOOM.
On a CPU the biases are an additive mask of PyTorch's scaled dot-product attention; on a GPU FlexAttention
adds the same table inside one fused kernel, so no [length, length] mask exists there (see `train.model.flex`).
Attention within documents is one more condition of the mask (see `train.model.documents`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.model.documents import own_positions, unseen_pairs
from train.model.flex import attention_by_key, has_kernel
from train.model.plain import plain_attention
from train.model.randomness import Randomness
from train.parallel.tensor import TensorParallel


def alibi_slopes(heads: int) -> list[float]:
    """One slope per head, in double precision.

    For a power of two n: 2^(-8/n), 2^(-16/n), ...; otherwise those of the next lower power of two, then
    every other slope (the 1st, 3rd, ...) of twice that power.
    """
    power = 2 ** int(math.log2(heads))
    slopes = _geometric(power)
    return slopes + _geometric(2 * power)[0::2][: heads - power]


def _geometric(count: int) -> list[float]:
    ratio = 2.0 ** (-(2.0 ** -(math.log2(count) - 3)))
    return [ratio * ratio**index for index in range(count)]


@lru_cache(maxsize=8)
def alibi_table(
    heads: int, first: int, count: int, length: int, dtype: torch.dtype, device: torch.device, bf16: bool = False
) -> Tensor:
    """Biases [count, length] of heads `first` to `first + count`: slope * key index, rounded to `dtype`.

    With `bf16` they are first rounded to bfloat16, which at position 2,000 moves them by up to 4.
    """
    slopes = torch.tensor(alibi_slopes(heads)[first : first + count], dtype=torch.float32, device=device)
    positions = torch.arange(length, dtype=torch.float32, device=device)
    biases = slopes[:, None] * positions
    return (biases.bfloat16() if bf16 else biases).to(dtype)


@lru_cache(maxsize=2)
def _causal_alibi_mask(
    heads: int, first: int, count: int, length: int, dtype: torch.dtype, device: torch.device, bf16: bool
) -> Tensor:
    """Additive mask [1, count, length, length]: the biases up to the query's own position, -inf after it."""
    table = alibi_table(heads, first, count, length, dtype, device, bf16)
    future = unseen_pairs(length, device, None)
    return table[:, None, :].expand(count, length, length).masked_fill(future, -math.inf)[None]


@lru_cache(maxsize=1)  # all layers of a micro-batch share it
def _document_alibi_mask(
    heads: int,
    first: int,
    count: int,
    length: int,
    dtype: torch.dtype,
    device: torch.device,
    bf16: bool,
    starts: Tensor,
) -> Tensor:
    """The same for each sample of a micro-batch, [batch, count, length, length]: -inf in other documents, too.

    A key's position is that in its document.
    """
    table = alibi_table(heads, first, count, length, dtype, device, bf16)
    biases = table[:, own_positions(starts)].transpose(0, 1)[:, :, None]
    unseen = unseen_pairs(length, device, starts)
    return biases.expand(len(starts), count, length, length).masked_fill(unseen, -math.inf)


class AlibiAttention(nn.Module):
    """softmax(q k^T / sqrt(head size) + bias) v for the heads of this process; it has no parameters.

    With `bf16_biases` the biases are rounded as in BLOOM's run, whatever the precision of this one. `name` and
    `randomness` are those of the dropout.
    """

    def __init__(
        self,
        heads: int,
        *,
        dropout: float,
        parallel: TensorParallel,
        bf16_biases: bool = False,
        name: str = "",
        randomness: Randomness | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.dropout, self.bf16_biases = heads, dropout, bf16_biases
        self.name, self.randomness = name, randomness or Randomness()
        self.first, self.count = parallel.share(heads)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, starts: Tensor | None = None) -> Tensor:
        """[batch, heads of this process, length, head size] three times; returns the same shape.

        `starts` [batch, length] keeps attention within documents (see `train.model.documents`).
        """
        place = (self.heads, self.first, self.count, query.shape[2], query.dtype, query.device, self.bf16_biases)
        dropout = self.dropout if self.training else 0.0
        if has_kernel(query) and dropout == 0.0:
            return attention_by_key(query, key, value, alibi_table(*place), starts)
        mask = _causal_alibi_mask(*place) if starts is None else _document_alibi_mask(*place, starts)
        if dropout > 0.0:
            return plain_attention(query, key, value, mask, dropout, self.name, self.randomness, self.first)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
