"""Relative positions against the paper's formula, written as loops over queries, keys and heads."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from train.model.randomness import Randomness
from train.model.relative import RelativeAttention, by_key, distance_encodings
from train.parallel.tensor import TensorParallel

HIDDEN, HEADS = 24, 3
SIZE = HIDDEN // HEADS


def attention(parallel: TensorParallel | None = None) -> RelativeAttention:
    module = RelativeAttention(
        "h.0.self_attention.attend", HIDDEN, HEADS, std=0.3, seed=1, dropout=0.0,
        parallel=parallel or TensorParallel(), randomness=Randomness(),
    )  # fmt: skip
    whole = torch.Generator().manual_seed(2)
    first, count = module.first * SIZE, module.count * SIZE
    with torch.no_grad():
        for bias in (module.content_bias, module.position_bias):
            bias.copy_(torch.randn(HIDDEN, generator=whole)[first : first + count])
    return module


def inputs(length: int, heads: int = HEADS) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(length)
    query, key, value = (torch.randn(2, heads, length, SIZE, generator=generator).requires_grad_() for _ in range(3))
    return query, key, value


def sinusoid(distance: int) -> Tensor:
    """Vaswani et al. 2017, section 3.5, with Transformer-XL's order: all sines, then all cosines."""
    angles = [distance / 10000 ** (2 * i / HIDDEN) for i in range(HIDDEN // 2)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float32)


def reference(module: RelativeAttention, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Transformer-XL, section 3.3, terms (a) to (d), one query and one key at a time."""
    length = query.shape[2]
    by_head = []
    for head in range(HEADS):
        part = slice(head * SIZE, (head + 1) * SIZE)
        matrix = module.positions.weight[part]
        u, v = module.content_bias[part], module.position_bias[part]
        rows = []
        for i in range(length):
            q = query[:, head, i]
            scores = []
            for j in range(i + 1):
                k, position = key[:, head, j], matrix @ sinusoid(i - j)
                scores.append((q * k).sum(-1) + q @ position + k @ u + v @ position)
            weights = torch.softmax(torch.stack(scores, -1) / math.sqrt(SIZE), -1)
            rows.append((weights[..., None] * value[:, head, : i + 1]).sum(1))
        by_head.append(torch.stack(rows, 1))
    return torch.stack(by_head, 1)


def test_attention_and_its_gradients_equal_the_formula() -> None:
    for length in (1, 2, 11):
        module, tensors = attention(), inputs(length)
        found, expected = module(*tensors), reference(module, *tensors)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        to = [*tensors, *module.parameters()]
        probe = torch.randn(found.shape, generator=torch.Generator().manual_seed(0))
        gradients, truth = (torch.autograd.grad((result * probe).sum(), to) for result in (found, expected))
        for mine, theirs in zip(gradients, truth, strict=True):
            torch.testing.assert_close(mine, theirs, atol=2e-5, rtol=1e-4)


def test_twice_the_length_begins_with_the_same_results() -> None:
    """Nothing is tied to a length: positions beyond it follow the same formula, and earlier ones do not change."""
    module = attention()
    query, key, value = inputs(22)
    long = module(query, key, value)
    torch.testing.assert_close(long, reference(module, query, key, value), atol=1e-5, rtol=1e-5)
    short = module(query[:, :, :11], key[:, :, :11], value[:, :, :11])
    torch.testing.assert_close(long[:, :, :11], short, atol=1e-6, rtol=1e-5)


def test_moving_by_memory_equals_indexing() -> None:
    for length in (1, 2, 7):
        falling = torch.randn(2, 3, length, length)
        moved = by_key(falling)
        for i in range(length):
            for j in range(i + 1):
                assert torch.equal(moved[..., i, j], falling[..., i, length - 1 - (i - j)])


def test_each_process_computes_its_own_heads() -> None:
    whole, tensors = attention(), inputs(7)
    parts = []
    for rank in range(3):
        mine = attention(TensorParallel(3, rank))
        parts.append(mine(*(tensor[:, rank : rank + 1] for tensor in tensors)))
    torch.testing.assert_close(torch.cat(parts, 1), whole(*tensors), atol=1e-6, rtol=1e-5)


def test_encodings_are_the_sinusoids() -> None:
    table = distance_encodings(3000, HIDDEN, torch.device("cpu"))
    for distance in (0, 1, 77, 2999):
        torch.testing.assert_close(table[distance], sinusoid(distance), atol=1e-6, rtol=0)
