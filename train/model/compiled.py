"""PyTorch's compiler for chains of element-wise operations, on GPUs only.

A chain of small operations reads and writes its tensors once for each of them; compiled into one kernel, once in all.
On a CPU the tensors of a chain lie in the cache, the compiler would need a C++ compiler on the user's machine, and it
saves less in an hour than it takes to start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled_on_gpu(function: Callable[Concatenate[Tensor, _P], _R]) -> Callable[Concatenate[Tensor, _P], _R]:
    """`function` as it is for a first argument on the CPU, compiled (once per shape) for one on a GPU."""

    @functools.cache
    def compiled() -> Callable[Concatenate[Tensor, _P], _R]:
        return torch.compile(function, dynamic=False)

    @functools.wraps(function)
    def chosen(first: Tensor, /, *rest: _P.args, **named: _P.kwargs) -> _R:
        run = compiled() if first.is_cuda else function
        return run(first, *rest, **named)

    return chosen
