"""The language-model head and its cross-entropy in one step, without ever holding all logits.

Logits of a batch are [tokens, vocabulary]: for BLOOM's 250,880 rows far larger than anything else in the
model. Here a chunk of tokens at a time is multiplied with the embedding matrix, reduced to its losses and,
when training, turned into gradients at once, in the memory of the logits; only the gradients are kept. If the
vocabulary is cut over processes, each computes its columns and two small all-reduces a chunk give the softmax
(Megatron-LM, arXiv 1909.08053, section 3).
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from train.model.softmax import begin_softmax, finish_softmax
from train.parallel.tensor import TensorParallel

# Logits held at a time: 32 MiB of float32 on a CPU; on a GPU, where every chunk reads and writes the whole gradient of
# the matrix, 2 GiB of bfloat16.
_LOGITS_AT_ONCE = {"cpu": 1 << 23, "cuda": 1 << 30}


def vocabulary_loss(
    hidden: Tensor, weight: Tensor, labels: Tensor, parallel: TensorParallel, divisor: float | None = None
) -> Tensor:
    """Mean cross-entropy in nats over all tokens: products in the precision of `hidden`, all sums in float32.

    hidden [..., hidden size] is replicated; weight [rows of this process, hidden size] is its part of the
    tied embedding; labels [...] are token ids of the whole vocabulary. With `divisor`, labels below 0 do not
    count, and the sum over the others is divided by it instead of the number of tokens. Every process returns
    the same scalar. Gradients can be taken once.
    """
    rows = hidden.reshape(-1, hidden.shape[-1])
    loss: Tensor = _HeadAndLoss.apply(  # type: ignore[no-untyped-call]
        rows, weight, labels.reshape(-1), parallel, torch.is_grad_enabled(), divisor
    )
    return loss


class _HeadAndLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        labels: Tensor,
        parallel: TensorParallel,
        training: bool,
        divisor: float | None,
    ) -> Tensor:
        tokens, columns = len(hidden), len(weight)
        chunks = -(-tokens * columns // _LOGITS_AT_ONCE[hidden.device.type])
        losses = torch.empty(tokens, dtype=torch.float32, device=hidden.device)
        hidden_gradient = torch.empty_like(hidden) if training else None
        weight_gradient = None
        counted, divisor = (None, float(tokens)) if divisor is None else (labels >= 0, divisor)
        for part in _parts(tokens, min(chunks, tokens)):
            logits = hidden[part] @ weight.t()
            if hidden.device.type == "cpu":  # its softmax works in place, which only float32 is exact enough for
                logits = logits.float()
            column = labels[part] - parallel.rank * columns
            here = (column >= 0) & (column < columns)
            column = column.clamp_(0, columns - 1)[:, None]
            at_label = logits.gather(1, column)[:, 0].float()
            own_largest, own_total = begin_softmax(logits)
            largest = parallel.all_reduce(own_largest.clone(), dist.ReduceOp.MAX)
            # The second row counts the label's logit once: only where the label's column is.
            total, wanted = parallel.all_reduce(
                torch.stack((own_total * (own_largest - largest).exp(), (at_label - largest) * here))
            )
            losses[part] = total.log() - wanted
            if hidden_gradient is None:
                continue
            # d loss / d logits = softmax - one-hot, times 1 / tokens, which backward applies
            shift = largest + total.log()
            slope = finish_softmax(logits, own_largest + own_total.log(), shift, alone=parallel.size == 1)
            slope.scatter_(1, column, ((at_label - shift).exp() - here.float()).to(slope.dtype)[:, None])
            slope = slope.to(hidden.dtype)
            torch.mm(slope, weight, out=hidden_gradient[part])
            # Rows that do not count are zeroed here and below, not in `slope`, which is as wide as the vocabulary.
            rows = hidden[part] if counted is None else hidden[part] * counted[part, None]
            weight_gradient = _add_product(weight_gradient, slope.t(), rows)
        if hidden_gradient is not None:
            if counted is not None:
                hidden_gradient.mul_(counted[:, None])
            parallel.all_reduce(hidden_gradient)
            ctx.gradients = hidden_gradient, weight_gradient
            ctx.divisor, ctx.dtype = divisor, weight.dtype
        return losses.mean() if counted is None else (losses * counted).sum() / divisor

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        hidden_gradient, weight_gradient = ctx.gradients
        ctx.gradients = None  # scaled in place: they are good for one backward pass
        scale = gradients[0] / ctx.divisor
        return hidden_gradient.mul_(scale), _scaled(weight_gradient, scale, ctx.dtype), None, None, None, None


def _parts(tokens: int, chunks: int) -> list[slice]:
    """`chunks` parts of sizes that differ by one at most."""
    bounds = [tokens * number // chunks for number in range(chunks + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def _scaled(gradient: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """gradient * scale in `dtype`: in place where that is the gradient's own, otherwise in one pass on a GPU."""
    if gradient.dtype == dtype:
        return gradient.mul_(scale)
    return torch.mul(gradient, scale, out=torch.empty_like(gradient, dtype=dtype))


def _add_product(total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    """total + left @ right with the sum in float32, in place if there is a total already."""
    if left.dtype == torch.float32:
        return left @ right if total is None else total.addmm_(left, right)
    product = torch.mm(left, right, out_dtype=torch.float32) if left.is_cuda else (left @ right).float()
    return product if total is None else total.add_(product)
