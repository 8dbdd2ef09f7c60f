"""ALiBi against the numbers of the original Megatron code, and the two ways of computing attention."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from tests.train.reference import slopes
from train.model.attention import AlibiAttention, alibi_slopes, alibi_table
from train.model.flex import attention_by_distance, attention_by_key
from train.model.plain import plain_attention
from train.model.randomness import Randomness
from train.model.relative import by_key
from train.parallel.tensor import TensorParallel

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((shared / "golden" / "megatron" / "05_alibi.json").read_text())
    return loaded


def bits(table: torch.Tensor) -> list[Any]:
    values: list[Any] = (table.view(torch.int16).to(torch.int32) & 0xFFFF).tolist()
    return values


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 7, 8, 12, 16, 112])
def test_slopes_follow_the_rule_in_words(heads: int) -> None:
    assert alibi_slopes(heads) == pytest.approx(slopes(heads).tolist(), rel=1e-12)


def test_slopes_equal_the_original_for_every_head_count(golden: dict[str, Any]) -> None:
    for case in golden["slopes"]:
        assert alibi_slopes(case["heads"]) == case["slopes_float64"], case["heads"]
        single = torch.tensor(alibi_slopes(case["heads"]))
        assert hashlib.sha256(single.numpy().tobytes()).hexdigest() == case["float32_sha256"]


def test_tables_equal_the_original_in_fp32_and_bf16(golden: dict[str, Any]) -> None:
    for case in golden["tensors"]:
        heads, length = case["heads"], case["seq"]
        expected = torch.tensor(case["values"])[:heads, 0]  # the original repeats the table for each batch entry
        assert torch.equal(alibi_table(heads, 0, heads, length, torch.float32, CPU), expected)
        rounded = alibi_table(heads, 0, heads, length, torch.bfloat16, CPU)
        assert bits(rounded) == [rows[0] for rows in case["bf16_bits"][:heads]]


def test_each_process_takes_its_own_heads(golden: dict[str, Any]) -> None:
    for case in golden["tensor_parallel"]:
        first, count = TensorParallel(case["tp"], case["rank"]).share(case["heads"])
        table = alibi_table(case["heads"], first, count, case["seq"], torch.float32, CPU)
        assert torch.equal(table, torch.tensor(case["values"])[:count, 0])


def test_full_length_tables_hash_to_the_original(golden: dict[str, Any]) -> None:
    for case in golden["full_2048"]:
        heads = case["heads"]
        single = alibi_table(heads, 0, heads, case["seq"], torch.float32, CPU)
        assert hashlib.sha256(single.numpy().tobytes()).hexdigest() == case["fp32_sha256"]
        rounded = alibi_table(heads, 0, heads, case["seq"], torch.bfloat16, CPU)
        assert hashlib.sha256(rounded.view(torch.int16).numpy().tobytes()).hexdigest() == case["bf16_bits_sha256"]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_computes_what_the_masked_product_does() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 6, 32, 16) for _ in range(3))
    masked = AlibiAttention(6, dropout=0.0, parallel=TensorParallel())(query, key, value)
    table = alibi_table(6, 0, 6, 32, torch.float32, CPU)
    found = attention_by_key(query, key, value, table, attend=flex_attention)
    torch.testing.assert_close(found, masked, atol=1e-6, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_gradients_through_flex_attention_are_those_of_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU FlexAttention refuses gradients because they would be slow; they are what a GPU's are derived from."""
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 37, 16).requires_grad_() for _ in range(3)]
    by_distance, slope = torch.randn(2, 3, 37, 37).requires_grad_(), torch.randn(2, 3, 37, 16)
    future = torch.ones(37, 37, dtype=torch.bool).triu(1)
    table = alibi_table(3, 0, 3, 37, torch.float32, CPU)
    plain = [
        plain_attention(*inputs, bias.masked_fill(future, -torch.inf), 0.0, "", Randomness(), 0)
        for bias in (table[:, None].expand(3, 37, 37), by_key(by_distance))
    ]
    fast = [
        attention_by_key(*inputs, table, attend=flex_attention),
        attention_by_distance(*inputs, by_distance, attend=flex_attention),
    ]
    for found, expected, to in zip(fast, plain, (inputs, [*inputs, by_distance]), strict=True):
        for mine, theirs in zip(*(torch.autograd.grad(y, to, slope) for y in (found, expected)), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_reads_relative_positions_where_the_shift_puts_them() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 37, 16) for _ in range(3))
    by_distance = torch.randn(2, 3, 37, 37)
    future = torch.ones(37, 37, dtype=torch.bool).triu(1)
    bias = by_key(by_distance).masked_fill(future, -torch.inf)
    plain = plain_attention(query, key, value, bias, 0.0, "", Randomness(), 0)
    found = attention_by_distance(query, key, value, by_distance, attend=flex_attention)
    torch.testing.assert_close(found, plain, atol=1e-6, rtol=1e-5)


def test_a_position_does_not_see_later_ones() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 4, 12, 8) for _ in range(3))
    attend = AlibiAttention(4, dropout=0.0, parallel=TensorParallel())
    before = attend(query, key, value)
    key[:, :, 7:], value[:, :, 7:] = 100.0, -100.0
    assert torch.equal(attend(query, key, value)[:, :, :7], before[:, :, :7])
