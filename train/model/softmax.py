"""A softmax in two steps, between which processes that hold different columns can compare notes.

The first step gives, for each row, the largest value and the sum of exp(value - largest); the second turns the values
into probabilities, given the logarithm of the whole row's sum. Each device has its own way to touch the values as
little as possible: a CPU makes the probabilities of its own columns at once, while a row is in its cache; a GPU reads
twice and writes once, in two compiled kernels that compute in float32 whatever the values' precision.
"""

from __future__ import annotations

import torch
from torch import Tensor

from train.model.compiled import compiled_on_gpu


def begin_softmax(values: Tensor) -> tuple[Tensor, Tensor]:
    """Largest value and sum of exp(value - largest) of each row, float32 [rows] each.

    `values` [rows, columns] may be changed and must be handed on to `finish_softmax`.
    """
    if values.is_cuda:
        return _row_sums(values)
    largest = values.amax(1)
    torch.softmax(values, 1, out=values)
    # The largest value's probability is exp(0) / sum.
    return largest, 1.0 / values.amax(1)


def finish_softmax(values: Tensor, own: Tensor, whole: Tensor, *, alone: bool) -> Tensor:
    """What `begin_softmax` left, turned in place into exp(value - whole).

    `own` and `whole` [rows] are log-sums of exp(value) over the columns here and of the whole row; `alone` says that
    they are the same.
    """
    if values.is_cuda:
        return _probabilities_(values, whole)
    return values if alone else values.mul_((own - whole).exp()[:, None])


@compiled_on_gpu
def _row_sums(values: Tensor) -> tuple[Tensor, Tensor]:
    exact = values.float()
    largest = exact.amax(1)
    return largest, (exact - largest[:, None]).exp().sum(1)


@compiled_on_gpu
def _probabilities_(values: Tensor, whole: Tensor) -> Tensor:
    return values.copy_((values.float() - whole[:, None]).exp())
