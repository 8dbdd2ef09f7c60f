"""Tensor parallelism: one matrix cut over several processes.

A column-parallel linear layer holds some of the outputs, a row-parallel one some of the inputs, and the
vocabulary embedding some of the rows (Megatron-LM, arXiv 1909.08053, section 3). A column-parallel layer
followed by a row-parallel one needs one all-reduce forward and one backward. With one process every class
here is a plain layer.

With sequence parallelism (arXiv 2205.05198, section 4.2.2) each process holds, between those layers, only its part of
the positions: an all-gather before the pair and a reduce-scatter after it replace the all-reduce, at the same cost.

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
    """The processes that share each matrix: how many, which one this is, and their process group.

    With `sequence` they also share the positions of everything between the matrices.
    """

    size: int = 1
    rank: int = 0
    group: Any = None
    sequence: bool = False

    @property
    def cuts_sequence(self) -> bool:
        """Whether a process holds only a part of the positions between the matrices."""
        return self.sequence and self.size > 1

    def first_position(self, positions: int) -> int:
        """The number of the first of the `positions` positions held here between the matrices."""
        return self.rank * positions if self.cuts_sequence else 0

    def all_reduce(self, tensor: Tensor, op: Any = dist.ReduceOp.SUM) -> Tensor:
        """Combine a tensor over the processes, in place; nothing to do for one process."""
        if self.size > 1:
            dist.all_reduce(tensor, op=op, group=self.group)
        return tensor

    def share(self, whole: int) -> tuple[int, int]:
        """First index and count of this process's part of a dimension of size `whole`."""
        count = whole // self.size
        return self.rank * count, count


def _gathered(part: Tensor, parallel: TensorParallel) -> Tensor:
    """[batch, positions here, ...] of all processes, joined to [batch, all positions, ...]."""
    parts = [torch.empty_like(part, memory_format=torch.contiguous_format) for _ in range(parallel.size)]
    dist.all_gather(parts, part.contiguous(), group=parallel.group)
    return torch.cat(parts, 1)


def _own_part(whole: Tensor, parallel: TensorParallel) -> Tensor:
    return whole.chunk(parallel.size, 1)[parallel.rank].contiguous()


def _reduced_part(partial: Tensor, parallel: TensorParallel) -> Tensor:
    """The sum over processes of [batch, all positions, ...], of which this one receives its positions."""
    parts = [part.contiguous() for part in partial.chunk(parallel.size, 1)]
    total = torch.empty_like(parts[0])
    dist.reduce_scatter(total, parts, group=parallel.group)
    return total


class _GatherSequence(torch.autograd.Function):
    """Joins the positions forward; backward sums what each process found for all of them (`partial`) or, if all
    found the same, takes its own."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, parallel: TensorParallel, partial: bool) -> Tensor:
        ctx.parallel, ctx.partial = parallel, partial
        return _gathered(part, parallel)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return (_reduced_part if ctx.partial else _own_part)(gradients[0], ctx.parallel), None, None


class _SumIntoParts(torch.autograd.Function):
    """Adds the partial results forward, each process keeping its positions; backward joins their gradients."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, parallel: TensorParallel) -> Tensor:
        ctx.parallel = parallel
        return _reduced_part(partial, parallel)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _gathered(gradients[0], ctx.parallel), None


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


def enter(hidden: Tensor, parallel: TensorParallel) -> Tensor:
    """[batch, positions, hidden] as the input of a matrix that is cut over the processes: all positions."""
    if parallel.size == 1:
        return hidden
    if parallel.sequence:
        return _applied(hidden, parallel, _GatherSequence, True)
    return _applied(hidden, parallel, _CopyToProcesses)


def leave(partial: Tensor, parallel: TensorParallel) -> Tensor:
    """The sum of the processes' partial results: replicated, or each process's part of the positions."""
    if parallel.size == 1:
        return partial
    return _applied(partial, parallel, _SumIntoParts if parallel.sequence else _AddOverProcesses)


def whole_sequence(hidden: Tensor, parallel: TensorParallel) -> Tensor:
    """All positions, for something that every process computes alike and whose gradient is whole in each."""
    return _applied(hidden, parallel, _GatherSequence, False) if parallel.cuts_sequence else hidden


def summed_gradient(parameter: Tensor, parallel: TensorParallel) -> Tensor:
    """A replicated parameter as used between the matrices: where each process sees only some positions, its gradient
    is the sum of theirs."""
    return _applied(parameter, parallel, _CopyToProcesses) if parallel.cuts_sequence else parameter


def _applied(tensor: Tensor, parallel: TensorParallel, step: type[torch.autograd.Function], *rest: bool) -> Tensor:
    result: Tensor = step.apply(tensor, parallel, *rest)  # type: ignore[no-untyped-call]
    return result


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
    """y = x W^T + b with W [outputs, inputs] cut along outputs: x has all inputs, y is cut along its last
    axis. b is left out without `bias`."""

    def __init__(
        self, name: str, inputs: int, outputs: int, *, std: float, seed: int, parallel: TensorParallel, bias: bool
    ) -> None:
        super().__init__()
        self.parallel = parallel
        self.weight = cut_parameter(initial_shard(name, (outputs, inputs), std, seed, parallel, dim=0), 0)
        self.bias = cut_parameter(torch.zeros(parallel.share(outputs)[1]), 0) if bias else None

    def forward(self, hidden: Tensor) -> Tensor:
        return F.linear(enter(hidden, self.parallel), self.weight, self.bias)


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
        total = leave(F.linear(hidden, self.weight), self.parallel)
        # The bias is replicated: added before the sum it would count once per process.
        return total if self.bias is None else total + summed_gradient(self.bias, self.parallel)


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
        return leave(found.masked_fill(elsewhere[..., None], 0.0), self.parallel)
