"""Tensor parallelism: one matrix cut over several processes.

A column-parallel linear layer holds some of the outputs, a row-parallel one some of the inputs, and the
vocabulary embedding some of the rows (Megatron-LM, arXiv 1909.08053, section 3). A column-parallel layer
followed by a row-parallel one needs one all-reduce forward and one backward. With one process every class
here is a plain layer.

Initial values are drawn from a generator seeded by the parameter's name, always for the whole matrix, and
each process keeps its part: a model starts from the same numbers in every layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
import xxhash
from torch import Tensor, nn

_ROWS_DRAWN_AT_ONCE = 1024  # bounds the memory of drawing a large matrix; part of what fixes the initial values


@dataclass(frozen=True, slots=True)
class TensorParallel:
    """The processes that share each matrix: how many, which one this is, and their process group."""

    size: int = 1
    rank: int = 0
    group: Any = None

    def all_reduce(self, tensor: Tensor, op: Any = dist.ReduceOp.SUM) -> Tensor:
        """Combine a tensor over the processes, in place; nothing to do for one process."""
        if self.size > 1:
            dist.all_reduce(tensor, op=op, group=self.group)
        return tensor

    def share(self, whole: int) -> tuple[int, int]:
        """First index and count of this process's part of a dimension of size `whole`."""
        count = whole // self.size
        return self.rank * count, count


class _CopyToProcesses(torch.autograd.Function):
    """Identity forward; backward adds the gradients that each process found for the shared input."""

    @staticmethod
    def forward(ctx: Any, shared: Tensor, parallel: TensorParallel) -> Tensor:
        ctx.parallel = parallel
        return shared.view_as(shared)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.parallel.all_reduce(gradients[0].clone(memory_format=torch.contiguous_format)), None


class _AddOverProcesses(torch.autograd.Function):
    """Adds the partial results forward; backward hands each process the same gradient."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, parallel: TensorParallel) -> Tensor:
        return parallel.all_reduce(partial.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def copy_to_processes(shared: Tensor, parallel: TensorParallel) -> Tensor:
    """Use a replicated tensor in a part of the computation that is cut over the processes."""
    return shared if parallel.size == 1 else _CopyToProcesses.apply(shared, parallel)  # type: ignore[no-untyped-call]


def add_over_processes(partial: Tensor, parallel: TensorParallel) -> Tensor:
    """Sum the processes' partial results into a replicated tensor."""
    return partial if parallel.size == 1 else _AddOverProcesses.apply(partial, parallel)  # type: ignore[no-untyped-call]


def initial_shard(
    name: str, shape: tuple[int, int], std: float, seed: int, parallel: TensorParallel, dim: int
) -> Tensor:
    """This process's slice along `dim` of the N(0, std) matrix called `name`, float32 on the CPU."""
    generator = torch.Generator().manual_seed(xxhash.xxh3_64_intdigest(f"{seed}:{name}") >> 1)
    first, count = parallel.share(shape[dim])
    shard = torch.empty((count, shape[1]) if dim == 0 else (shape[0], count))
    for start in range(0, shape[0], _ROWS_DRAWN_AT_ONCE):
        stop = min(start + _ROWS_DRAWN_AT_ONCE, shape[0])
        block = torch.empty(stop - start, shape[1]).normal_(0.0, std, generator=generator)
        if dim == 1:
            shard[start:stop] = block[:, first : first + count]
            continue
        low, high = max(start, first), min(stop, first + count)
        if low < high:
            shard[low - first : high - first] = block[low - start : high - start]
    return shard


def cut_parameter(values: Tensor, dim: int) -> nn.Parameter:
    """A parameter of which this process holds `values`, a part along `dim`."""
    parameter = nn.Parameter(values)
    # DeepSpeed counts parameters without this mark once per model when it computes the gradient norm.
    parameter.tensor_model_parallel = True  # type: ignore[attr-defined]
    parameter.partition_dim = dim  # type: ignore[attr-defined]
    return parameter


class ColumnParallelLinear(nn.Module):
    """y = x W^T + b with W [outputs, inputs] cut along outputs: x is replicated, y is cut along its last
    axis. b is left out without `bias`."""

    def __init__(
        self, name: str, inputs: int, outputs: int, *, std: float, seed: int, parallel: TensorParallel, bias: bool
    ) -> None:
        super().__init__()
        self.parallel = parallel
        self.weight = cut_parameter(initial_shard(name, (outputs, inputs), std, seed, parallel, dim=0), 0)
        self.bias = cut_parameter(torch.zeros(parallel.share(outputs)[1]), 0) if bias else None

    def forward(self, hidden: Tensor) -> Tensor:
        return F.linear(copy_to_processes(hidden, self.parallel), self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """y = x W^T + b with W [outputs, inputs] cut along inputs: x is cut along its last axis, y is
    replicated. b is left out without `bias`."""

    def __init__(
        self, name: str, inputs: int, outputs: int, *, std: float, seed: int, parallel: TensorParallel, bias: bool
    ) -> None:
        super().__init__()
        self.parallel = parallel
        self.weight = cut_parameter(initial_shard(name, (outputs, inputs), std, seed, parallel, dim=1), 1)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, hidden: Tensor) -> Tensor:
        if self.parallel.size == 1:
            return F.linear(hidden, self.weight, self.bias)
        total = add_over_processes(F.linear(hidden, self.weight), self.parallel)
        # The bias is replicated: added before the sum it would count once per process.
        return total if self.bias is None else total + self.bias


class VocabularyEmbedding(nn.Module):
    """Token ids [batch, length] to vectors [batch, length, hidden]; the rows are cut over the processes."""

    def __init__(self, name: str, rows: int, hidden: int, *, std: float, seed: int, parallel: TensorParallel) -> None:
        super().__init__()
        self.parallel = parallel
        self.first, self.count = parallel.share(rows)
        self.weight = cut_parameter(initial_shard(name, (rows, hidden), std, seed, parallel, dim=0), 0)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.parallel.size == 1:
            return F.embedding(tokens, self.weight)
        elsewhere = (tokens < self.first) | (tokens >= self.first + self.count)
        found = F.embedding((tokens - self.first).masked_fill(elsewhere, 0), self.weight)
        return add_over_processes(found.masked_fill(elsewhere[..., None], 0.0), self.parallel)
