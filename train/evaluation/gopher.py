"""A Gopher with a cache of keys and values, for likelihoods of texts that begin alike.

Keys and values do not depend on where a query stands, only scores do: the cache holds what `train.model.relative`
computes, and new queries meet all keys at their distances. One process, no dropout.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from train.model.layers import TransformerBlock
from train.model.relative import RelativeAttention, distance_encodings
from train.standalone import load_standalone


class KeyValueCache:
    """Keys and values [batch, heads, positions, head size] of each block, with the methods of transformers' caches."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Tensor, Tensor]] = {}

    def grow(self, number: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add those of the next positions to block `number`; returns all."""
        if number in self._held:
            old_key, old_value = self._held[number]
            key, value = torch.cat((old_key, key), 2), torch.cat((old_value, value), 2)
        self._held[number] = key, value
        return key, value

    def crop(self, count: int) -> None:
        """Forget the last `-count` positions (`count` is negative)."""
        self._held = {number: (key[:, :, :count], value[:, :, :count]) for number, (key, value) in self._held.items()}

    def batch_repeat_interleave(self, repeats: int) -> None:
        """One text becomes `repeats` equal ones."""
        self._held = {
            number: (key.repeat_interleave(repeats, 0), value.repeat_interleave(repeats, 0))
            for number, (key, value) in self._held.items()
        }


class OwnGopher:
    """An exported Gopher."""

    def __init__(self, folder: Path) -> None:
        self._model = load_standalone(folder)

    @property
    def embedding(self) -> Tensor:
        weight: Tensor = self._model.layers[0].weight  # type: ignore[assignment]
        return weight

    def hidden(self, tokens: Tensor, cache: KeyValueCache) -> Tensor:
        """[batch, length] token ids, and a cache that grows by them, to [batch, length, hidden]."""
        hidden = tokens
        for number, layer in enumerate(self._model.layers):
            block = isinstance(layer, TransformerBlock)
            hidden = _block(layer, hidden, cache, number) if block else layer(hidden)
        return hidden

    def new_cache(self) -> KeyValueCache:
        return KeyValueCache()


def _block(block: Any, hidden: Tensor, cache: KeyValueCache, number: int) -> Tensor:
    attention = block.self_attention
    mixed = attention.query_key_value(block.input_layernorm(hidden))
    batch, length, _ = mixed.shape
    query, key, value = mixed.view(batch, length, attention.heads, 3, attention.head_size).permute(3, 0, 2, 1, 4)
    attended = _attend(attention.attend, query, *cache.grow(number, key, value))
    projected = attention.dense(attended.transpose(1, 2).reshape(batch, length, -1))
    hidden, normalised = block.post_attention_layernorm.after_sum(hidden, projected)
    result: Tensor = hidden + block.mlp(normalised)
    return result


def _attend(relative: RelativeAttention, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention of the last positions over all [batch, heads, positions, head size]; see train.model.relative."""
    new, known, size = query.shape[2], key.shape[2], query.shape[3]
    content, position = (query + bias.view(-1, 1, size) for bias in (relative.content_bias, relative.position_bias))
    encodings = relative.positions(distance_encodings(known, relative.hidden, query.device))
    by_distance = position @ encodings.view(known, -1, size).permute(1, 2, 0)
    distances = torch.arange(known - new, known)[:, None] - torch.arange(known)
    scores = content @ key.transpose(-1, -2)
    scores = scores + by_distance.gather(3, distances.clamp(min=0).expand(*by_distance.shape))
    weights = (scores / math.sqrt(size)).masked_fill(distances < 0, -math.inf).softmax(-1)
    attended: Tensor = weights @ value
    return attended
