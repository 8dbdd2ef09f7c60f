"""Gopher written down as plainly as possible: RMSNorm, scores by Transformer-XL's formula, no biases in matrices."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.train.reference import gelu, unseen


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def encodings(distances: Tensor, hidden: int) -> Tensor:
    angles = distances[..., None] / 10000 ** (2 * torch.arange(hidden // 2, dtype=torch.float64) / hidden)
    return torch.cat((angles.sin(), angles.cos()), -1).float()


def attention(
    x: Tensor, weights: dict[str, Tensor], name: str, heads: int, documents: Tensor | None = None
) -> Tensor:
    batch, length, hidden = x.shape
    size = hidden // heads
    mixed = (x @ weights[f"{name}.query_key_value.weight"].T).reshape(batch, length, heads, 3, size)
    distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    positions = encodings(distance.clamp(min=0).double(), hidden) @ weights[f"{name}.attend.positions.weight"].T
    outputs = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        query, key, value = (mixed[:, :, head, kind] for kind in range(3))
        content = query + weights[f"{name}.attend.content_bias"][part]
        place = query + weights[f"{name}.attend.position_bias"][part]
        scores = content @ key.transpose(1, 2) + torch.einsum("bid,ijd->bij", place, positions[..., part])
        scores = (scores / math.sqrt(size)).masked_fill(unseen(distance, documents), -math.inf)
        outputs.append(torch.softmax(scores, -1) @ value)
    return torch.cat(outputs, -1) @ weights[f"{name}.dense.weight"].T


def logits(weights: dict[str, Tensor], heads: int, tokens: Tensor, documents: Tensor | None = None) -> Tensor:
    """`weights` by their names on disk without the prefix `transformer.`; tokens [batch, length].

    With the numbers of the tokens' `documents` [batch, length] attention stays within them.
    """
    x = weights["word_embeddings.weight"][tokens]
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("h."))
    for number in range(layers):
        block = f"h.{number}"
        normed = rms_norm(x, weights[f"{block}.input_layernorm.weight"])
        x = x + attention(normed, weights, f"{block}.self_attention", heads, documents)
        normed = rms_norm(x, weights[f"{block}.post_attention_layernorm.weight"])
        inner = gelu(normed @ weights[f"{block}.mlp.dense_h_to_4h.weight"].T)
        x = x + inner @ weights[f"{block}.mlp.dense_4h_to_h.weight"].T
    return rms_norm(x, weights["ln_f.weight"]) @ weights["word_embeddings.weight"].T
