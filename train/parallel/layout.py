"""How many processes a run has in each of the three directions. No PyTorch needed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """How many processes share the data, each matrix, and the layers."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1

    @property
    def processes(self) -> int:
        return self.data * self.tensor * self.pipeline

    def __str__(self) -> str:
        return f"data {self.data} x tensor {self.tensor} x pipeline {self.pipeline}"
