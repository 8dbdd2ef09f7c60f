"""The language-model head and its cross-entropy in one step, without ever holding all logits.

Logits of a batch are [tokens, vocabulary]: for BLOOM's 250,880 rows far larger than anything else in the
model. Here a chunk of tokens at a time is multiplied with the embedding matrix, reduced to its losses and,
when training, turned into gradients at once; only those gradients are kept. If the vocabulary is cut over
processes, each computes its columns and two small all-reduces a chunk give the softmax (Megatron-LM, arXiv
1909.08053, section 3).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from train.parallel.tensor import TensorParallel

# Logits held at a time: 32 MiB of float32 keeps a CPU's caches useful, a GPU wants large multiplications.
_LOGITS_AT_ONCE = {"cpu": 1 << 23, "cuda": 1 << 28}


def vocabulary_loss(hidden: Tensor, weight: Tensor, labels: Tensor, parallel: TensorParallel) -> Tensor:
    """Mean cross-entropy in nats over all tokens, computed in float32.

    hidden [..., hidden size] is replicated; weight [rows of this process, hidden size] is its part of the
    tied embedding; labels [...] are token ids of the whole vocabulary. Every process returns the same
    scalar.
    """
    rows = hidden.reshape(-1, hidden.shape[-1])
    loss: Tensor = _HeadAndLoss.apply(rows, weight, labels.reshape(-1), parallel, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
    return loss


class _HeadAndLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, parallel: TensorParallel, training: bool
    ) -> Tensor:
        tokens, columns = len(hidden), len(weight)
        chunk = max(1, _LOGITS_AT_ONCE.get(hidden.device.type, 1 << 23) // columns)
        first = parallel.rank * columns
        losses = torch.empty(tokens, dtype=torch.float32, device=hidden.device)
        hidden_gradient = torch.empty_like(hidden) if training else None
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32) if training else None
        for start in range(0, tokens, chunk):
            part = slice(start, start + chunk)
            logits = (hidden[part] @ weight.t()).float()
            column = labels[part] - first
            here = (column >= 0) & (column < columns)
            column = column.clamp_(0, columns - 1)[:, None]
            largest = parallel.all_reduce(logits.amax(1, keepdim=True), dist.ReduceOp.MAX)
            logits.sub_(largest)
            wanted = logits.gather(1, column)[:, 0] * here
            scores = logits.exp_()
            wanted, total = parallel.all_reduce(torch.stack((wanted, scores.sum(1))))
            losses[part] = total.log() - wanted
            if hidden_gradient is not None and weight_gradient is not None:
                # d loss / d logits = (softmax - one-hot) / tokens
                scores.div_(total[:, None] * tokens).scatter_add_(1, column, here[:, None] / -tokens)
                slope = scores.to(hidden.dtype)
                torch.mm(slope, weight, out=hidden_gradient[part])
                if slope.dtype == torch.float32:
                    weight_gradient.addmm_(slope.t(), hidden[part])
                else:  # the chunks' products are in the run's precision, their sum is not
                    weight_gradient.add_(slope.t() @ hidden[part])
        if hidden_gradient is not None and weight_gradient is not None:
            parallel.all_reduce(hidden_gradient)
            ctx.save_for_backward(hidden_gradient, weight_gradient.to(weight.dtype))
        return losses.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden_gradient, weight_gradient = ctx.saved_tensors
        scale = gradients[0]
        by_hidden, by_weight = (gradient * scale.to(gradient.dtype) for gradient in (hidden_gradient, weight_gradient))
        return by_hidden, by_weight, None, None, None
