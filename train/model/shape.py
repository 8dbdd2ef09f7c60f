"""The sizes of a BLOOM, and what follows from them alone: parameters and operations. No PyTorch needed."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides a BLOOM's parameters: sizes, the spread of the initial values, and their seed."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int  # rows of the embedding, padding included
    epsilon: float = 1e-5
    init_std: float = 0.0048
    dropout: float = 0.0
    seed: int = 42

    @property
    def output_std(self) -> float:
        """Projections back into the residual stream start smaller by sqrt(2 * layers) (GPT-2, section
        2.3)."""
        return self.init_std / math.sqrt(2 * self.layers)


def parameter_count(shape: Shape) -> int:
    """L (12 h^2 + 13 h) + V h + 4 h: blocks, tied embedding, and the two LayerNorms outside of blocks."""
    h = shape.hidden
    return shape.layers * (12 * h * h + 13 * h) + shape.vocabulary * h + 4 * h


def model_flops_per_token(shape: Shape, length: int) -> float:
    """Operations of one training token, forward and backward, without any recomputation.

    72 L h^2 (1 + s / 6h + V / 12 L h) (arXiv 2104.04473, section 5.1, without its recomputed forward pass).
    """
    h = shape.hidden
    return 72.0 * shape.layers * h * h + 12.0 * shape.layers * h * length + 6.0 * shape.vocabulary * h
