"""The chunked head and loss against PyTorch's own cross-entropy over all logits."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from train.model import loss as module
from train.model.loss import vocabulary_loss
from train.parallel.tensor import TensorParallel

ALONE = TensorParallel()


@pytest.mark.parametrize("chunk", [1, 3, 5, 7, 1000])
def test_loss_and_gradients_equal_cross_entropy(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(chunk)
    batch, length, size, rows = 3, 7, 8, 50
    monkeypatch.setitem(module._LOGITS_AT_ONCE, "cpu", chunk * rows)
    hidden = (torch.randn(batch, length, size) * 3).requires_grad_()
    weight = torch.randn(rows, size).requires_grad_()
    labels = torch.randint(0, rows, (batch, length))
    plain = F.cross_entropy((hidden @ weight.T).flatten(0, 1), labels.flatten())
    expected = torch.autograd.grad(plain * 0.25, (hidden, weight))
    found = vocabulary_loss(hidden, weight, labels, ALONE)
    gradients = torch.autograd.grad(found * 0.25, (hidden, weight))
    torch.testing.assert_close(found, plain, atol=1e-6, rtol=1e-6)
    for mine, theirs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-5)


def test_large_logits_do_not_overflow() -> None:
    hidden, weight = torch.full((2, 4), 1e3), torch.eye(4) * 1e3
    assert vocabulary_loss(hidden, weight, torch.tensor([0, 1]), ALONE).item() == pytest.approx(
        torch.tensor(4.0).log().item()
    )


def test_bf16_is_summed_in_float32() -> None:
    torch.manual_seed(0)
    hidden = torch.randn(64, 16).bfloat16().requires_grad_()
    weight = torch.randn(40, 16).bfloat16().requires_grad_()
    labels = torch.randint(0, 40, (64,))
    found = vocabulary_loss(hidden, weight, labels, ALONE)
    found.backward()  # type: ignore[no-untyped-call]
    plain = F.cross_entropy((hidden @ weight.T).float(), labels)
    assert found.dtype == torch.float32 and found.item() == pytest.approx(plain.item(), rel=1e-6)
    expected = torch.autograd.grad(plain, weight)[0]
    assert weight.grad is not None and weight.grad.dtype == torch.bfloat16
    torch.testing.assert_close(weight.grad.float(), expected.float(), atol=2e-3, rtol=2e-2)


def test_without_gradients_nothing_is_kept_for_them() -> None:
    hidden, weight = torch.randn(4, 8).requires_grad_(), torch.randn(10, 8).requires_grad_()
    with torch.no_grad():
        assert not vocabulary_loss(hidden, weight, torch.zeros(4, dtype=torch.long), ALONE).requires_grad
