"""The sizes of a model, and what follows from them alone: parameters and operations. No PyTorch needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["bloom", "gopher"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides a model's parameters: sizes, the spread of the initial values, and their seed."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int  # rows of the embedding, padding included
    epsilon: float = 1e-5
    init_std: float = 0.0048
    dropout: float = 0.0
    seed: int = 42
    kind: Kind = "bloom"
    bf16_biases: bool = False  # ALiBi's, in a run of higher precision

    @property
    def title(self) -> str:
        """What this kind of model is called."""
        return {"bloom": "BLOOM", "gopher": "Gopher"}[self.kind]

    @property
    def output_std(self) -> float:
        """Projections back into the residual stream start smaller by sqrt(2 * layers) (GPT-2, section
        2.3)."""
        return self.init_std / math.sqrt(2 * self.layers)


def parameter_count(shape: Shape) -> int:
    """Parameters of all processes together, the tied embedding once.

    BLOOM: L (12 h^2 + 13 h) + V h + 4 h: blocks, tied embedding, and the two LayerNorms outside of blocks.
    Gopher: L (13 h^2 + 4 h) + V h + h: a block has the matrix of the positions, their two biases and two RMSNorms,
    and no other biases.
    """
    h = shape.hidden
    if shape.kind == "bloom":
        return shape.layers * (12 * h * h + 13 * h) + shape.vocabulary * h + 4 * h
    return shape.layers * (13 * h * h + 4 * h) + shape.vocabulary * h + h


def checkpoint_bytes(parameters: int, precision: str) -> int:
    """Bytes on disk: weights and, in float32, master weights (none beside float32 weights) and two moments."""
    return parameters * (16 if precision == "fp32" else 14)


def model_flops_per_token(shape: Shape, length: int) -> float:
    """Operations of one training token, forward and backward, without any recomputation.

    72 L h^2 (1 + s / 6h + V / 12 L h) (arXiv 2104.04473, section 5.1, without its recomputed forward pass). The
    same for both kinds of model: what relative positions cost is left out, as in the published figures of Gopher
    (arXiv 2203.15556, appendix F).
    """
    h = shape.hidden
    return 72.0 * shape.layers * h * h + 12.0 * shape.layers * h * length + 6.0 * shape.vocabulary * h


def hardware_flops_per_token(shape: Shape, length: int, *, recomputed: bool) -> float:
    """The published count of what the processors really do: 24 c L h^2 (1 + s / 6h + V / 16 L h), c = 4 if the blocks'
    forward pass is repeated in backward, otherwise 3 (arXiv 2104.04473, equation 3; BLOOM's log).

    The head is counted with the same factor, although nobody recomputes it: with c = 4 that is 6 V h, as above.
    """
    h, layers = shape.hidden, shape.layers
    share = 1.0 + length / (6.0 * h) + shape.vocabulary / (16.0 * layers * h)
    return 24.0 * (4 if recomputed else 3) * layers * h * h * share
