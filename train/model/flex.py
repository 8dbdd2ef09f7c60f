"""Causal attention on GPUs: FlexAttention compiled with the bias of each kind of model (arXiv 2412.05496).

The bias is added to a score inside of the kernel, and blocks of the score matrix that lie in the future, or wholly in
other documents where attention must stay within them, are skipped.
Neither a mask nor the scores of all pairs of positions exist in memory. (Relative positions bring the scores of all
queries and distances with them, which are needed for their gradients anyway.)

FlexAttention has no dropout; and on a CPU it has no backward pass, but computes the same forward without a compiler,
which is how the tests compare it with the plain reference without a GPU: they pass the uncompiled one as `attend`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from train.model.documents import own_positions

Attend = Callable[..., Any]
_SMALLEST_HEAD = 16  # of the kernel's matrix products


def has_kernel(query: Tensor) -> bool:
    """Whether attention of these queries can run here."""
    return query.is_cuda and query.shape[-1] >= _SMALLEST_HEAD


@lru_cache(maxsize=1)
def _compiled() -> Attend:
    return torch.compile(flex_attention, dynamic=False)


@lru_cache(maxsize=2)
def _seen(length: int, device: torch.device, starts: Tensor | None) -> Any:
    """Which blocks of the scores hold any pair that counts; all layers of a micro-batch share its documents'."""
    if starts is not None:

        def is_seen(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return (query >= key) & (key >= starts[batch, query])

        return create_block_mask(is_seen, len(starts), None, length, length, device=str(device))

    def is_past(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return query >= key

    return create_block_mask(is_past, None, None, length, length, device=str(device))


def attention_by_key(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    table: Tensor,
    starts: Tensor | None = None,
    attend: Attend | None = None,
) -> Tensor:
    """Causal attention with bias table[head, key's position], which takes no gradient.

    query, key, value and the result are [batch, heads, length, head size]; table is [heads, length]; `starts`
    [batch, length] keeps it within documents, in which positions then count (see `train.model.documents`).
    """
    if starts is not None:
        own = own_positions(starts)

        def add_own_bias(score: Tensor, batch: Tensor, head: Tensor, position: Tensor, key_position: Tensor) -> Tensor:
            return score + table[head, own[batch, key_position]]

        return _causal(query, key, value, add_own_bias, starts, attend)

    def add_bias(score: Tensor, batch: Tensor, head: Tensor, position: Tensor, key_position: Tensor) -> Tensor:
        return score + table[head, key_position]

    return _causal(query, key, value, add_bias, None, attend)


def attention_by_distance(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    by_distance: Tensor,
    starts: Tensor | None = None,
    attend: Attend | None = None,
) -> Tensor:
    """Causal attention with bias by_distance[batch, head, query's position, length - 1 - distance].

    Distances fall from length - 1 to 0 along the last axis of by_distance [batch, heads, length, length], into which
    gradients flow. `starts` as above.
    """
    length = query.shape[2]

    def add_bias(score: Tensor, batch: Tensor, head: Tensor, position: Tensor, key_position: Tensor) -> Tensor:
        # Pairs in the future are computed too where a block holds both kinds; they must not read beyond the row.
        distance = torch.clamp(position - key_position, min=0)
        return score + by_distance[batch, head, position, length - 1 - distance]

    return _causal(query, key, value, add_bias, starts, attend)


def _causal(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Callable[..., Tensor],
    starts: Tensor | None,
    attend: Attend | None,
) -> Tensor:
    run = attend or _compiled()
    result: Tensor = run(query, key, value, score_mod=bias, block_mask=_seen(query.shape[2], query.device, starts))
    return result
