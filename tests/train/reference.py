"""BLOOM written down as plainly as possible: the independent truth for the model and for training steps.

No fused matrices beyond those of the published weights, attention as an explicit softmax, ALiBi as minus the slope
times the distance (the paper's form, where the project adds the slope times the key's position).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def slopes(heads: int) -> Tensor:
    """By the rule in words: powers of two directly, the rest from every other slope of twice the power."""
    power = 1
    while power * 2 <= heads:
        power *= 2
    values = [2.0 ** (-8.0 * i / power) for i in range(1, power + 1)]
    values += [2.0 ** (-8.0 * i / (2 * power)) for i in range(1, 2 * (heads - power) + 1, 2)]
    return torch.tensor(values, dtype=torch.float64)


def layer_norm(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def unseen(distance: Tensor, documents: Tensor | None) -> Tensor:
    """Pairs (query, key) that do not count: keys that come later, or belong to another document."""
    if documents is None:
        return distance < 0
    return (distance < 0) | (documents[:, :, None] != documents[:, None, :])


def attention(
    x: Tensor, weights: dict[str, Tensor], name: str, heads: int, documents: Tensor | None = None
) -> Tensor:
    batch, length, hidden = x.shape
    size = hidden // heads
    mixed = linear(x, weights, f"{name}.query_key_value").reshape(batch, length, heads, 3, size)
    distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    outputs = []
    for head, slope in enumerate(slopes(heads).tolist()):
        query, key, value = (mixed[:, :, head, part] for part in range(3))
        scores = query @ key.transpose(1, 2) / math.sqrt(size) - slope * distance
        scores = scores.masked_fill(unseen(distance, documents), -math.inf)
        outputs.append(torch.softmax(scores, -1) @ value)
    return linear(torch.cat(outputs, -1), weights, f"{name}.dense")


def logits(weights: dict[str, Tensor], heads: int, tokens: Tensor, documents: Tensor | None = None) -> Tensor:
    """`weights` by published names without the prefix `transformer.`; tokens [batch, length].

    With the numbers of the tokens' `documents` [batch, length] attention stays within them.
    """
    x = layer_norm(weights["word_embeddings.weight"][tokens], weights, "word_embeddings_layernorm")
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("h."))
    for number in range(layers):
        block = f"h.{number}"
        normed = layer_norm(x, weights, f"{block}.input_layernorm")
        x = x + attention(normed, weights, f"{block}.self_attention", heads, documents)
        fed = gelu(
            linear(layer_norm(x, weights, f"{block}.post_attention_layernorm"), weights, f"{block}.mlp.dense_h_to_4h")
        )
        x = x + linear(fed, weights, f"{block}.mlp.dense_4h_to_h")
    return layer_norm(x, weights, "ln_f") @ weights["word_embeddings.weight"].T
