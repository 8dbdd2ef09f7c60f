"""The layers of a model, each a step of the pipeline: they take and give [batch, length, hidden].

BLOOM and Gopher are the same stack of pre-norm blocks. They differ in the normalisation, the attention's positions,
and the biases of the matrices, which only BLOOM has. Names of sub-modules are those of the published Hugging Face
BLOOM, so that exporting is a matter of prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from train.model.attention import AlibiAttention
from train.model.documents import Documents
from train.model.norms import make_norm
from train.model.randomness import Randomness, recomputed
from train.model.relative import RelativeAttention
from train.model.shape import Shape
from train.parallel.tensor import ColumnParallelLinear, RowParallelLinear, TensorParallel

Recomputation = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True)
class Execution:
    """How this process computes its layers, which does not change what they compute.

    `recompute` in backward: nothing, the scores and weights of attention (arXiv 2205.05198, section 5), or all of a
    block.
    """

    parallel: TensorParallel
    randomness: Randomness
    recompute: Recomputation = "none"
    documents: Documents = field(default_factory=Documents)

    def dropped(self, hidden: Tensor, rate: float, name: str) -> Tensor:
        """Dropout of [batch, positions here, hidden] at the place `name`."""
        first = self.parallel.first_position(hidden.shape[1]) * hidden.shape[2]
        return self.randomness.drop(hidden, rate, name, first=first)


class EmbeddingNorm(nn.Module):
    """LayerNorm right after the word embedding, which made large BLOOMs train stably; then dropout."""

    def __init__(self, shape: Shape, execution: Execution) -> None:
        super().__init__()
        self.norm = make_norm(shape, execution.parallel)
        self.dropout, self.execution = shape.dropout, execution

    def forward(self, hidden: Tensor) -> Tensor:
        normalised: Tensor = self.norm(hidden)
        return self.execution.dropped(normalised, self.dropout, "embedding") if self.training else normalised


class EmbeddingDropout(nn.Module):
    """What stands in the place of EmbeddingNorm in a Gopher: dropout alone."""

    def __init__(self, shape: Shape, execution: Execution) -> None:
        super().__init__()
        self.dropout, self.execution = shape.dropout, execution

    def forward(self, hidden: Tensor) -> Tensor:
        return self.execution.dropped(hidden, self.dropout, "embedding") if self.training else hidden


class FinalNorm(nn.Module):
    """The normalisation after the last block."""

    def __init__(self, shape: Shape, execution: Execution) -> None:
        super().__init__()
        self.norm = make_norm(shape, execution.parallel)

    def forward(self, hidden: Tensor) -> Tensor:
        normalised: Tensor = self.norm(hidden)
        return normalised


class SelfAttention(nn.Module):
    """Queries, keys and values in one matrix, whose rows are [head, (query, key, value), head size]."""

    def __init__(self, shape: Shape, name: str, execution: Execution) -> None:
        super().__init__()
        parallel, seed, biased = execution.parallel, shape.seed, shape.kind == "bloom"
        self.heads, self.head_size = parallel.share(shape.heads)[1], shape.hidden // shape.heads
        self.execution = execution
        self.query_key_value = ColumnParallelLinear(
            f"{name}.query_key_value",
            shape.hidden,
            3 * shape.hidden,
            std=shape.init_std,
            seed=seed,
            parallel=parallel,
            bias=biased,
        )
        self.attend = _attention(shape, f"{name}.attend", execution)
        self.dense = RowParallelLinear(
            f"{name}.dense",
            shape.hidden,
            shape.hidden,
            std=shape.output_std,
            seed=seed,
            parallel=parallel,
            bias=biased,
        )

    def forward(self, hidden: Tensor, starts: Tensor | None = None) -> Tensor:
        """`starts` keeps attention within documents (see `train.model.documents`)."""
        mixed = self.query_key_value(hidden)
        batch, length, _ = mixed.shape
        query, key, value = mixed.view(batch, length, self.heads, 3, self.head_size).permute(3, 0, 2, 1, 4)
        if self.execution.recompute == "selective" and self.training:
            attended = recomputed(self.attend, query, key, value, starts, randomness=self.execution.randomness)
        else:
            attended = self.attend(query, key, value, starts)
        projected: Tensor = self.dense(attended.transpose(1, 2).reshape(batch, length, -1))
        return projected


def _attention(shape: Shape, name: str, execution: Execution) -> nn.Module:
    if shape.kind == "bloom":
        return AlibiAttention(
            shape.heads,
            dropout=shape.dropout,
            parallel=execution.parallel,
            bf16_biases=shape.bf16_biases,
            name=name,
            randomness=execution.randomness,
        )
    return RelativeAttention(
        name,
        shape.hidden,
        shape.heads,
        std=shape.init_std,
        seed=shape.seed,
        dropout=shape.dropout,
        parallel=execution.parallel,
        randomness=execution.randomness,
    )


class FeedForward(nn.Module):
    """hidden -> 4 hidden -> hidden with the tanh approximation of GeLU, as in BLOOM's fused kernel."""

    def __init__(self, shape: Shape, name: str, parallel: TensorParallel) -> None:
        super().__init__()
        biased = shape.kind == "bloom"
        self.dense_h_to_4h = ColumnParallelLinear(
            f"{name}.dense_h_to_4h",
            shape.hidden,
            4 * shape.hidden,
            std=shape.init_std,
            seed=shape.seed,
            parallel=parallel,
            bias=biased,
        )
        self.dense_4h_to_h = RowParallelLinear(
            f"{name}.dense_4h_to_h",
            4 * shape.hidden,
            shape.hidden,
            std=shape.output_std,
            seed=shape.seed,
            parallel=parallel,
            bias=biased,
        )

    def forward(self, hidden: Tensor) -> Tensor:
        projected: Tensor = self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(hidden), approximate="tanh"))
        return projected


class TransformerBlock(nn.Module):
    """One pre-norm block: x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, shape: Shape, number: int, execution: Execution) -> None:
        super().__init__()
        self.name, self.dropout, self.execution = f"h.{number}", shape.dropout, execution
        self.input_layernorm = make_norm(shape, execution.parallel)
        self.self_attention = SelfAttention(shape, f"{self.name}.self_attention", execution)
        self.post_attention_layernorm = make_norm(shape, execution.parallel)
        self.mlp = FeedForward(shape, f"{self.name}.mlp", execution.parallel)

    def forward(self, hidden: Tensor) -> Tensor:
        starts = self.execution.documents.starts  # handed on, because a second run happens in another micro-batch
        if self.execution.recompute == "full" and self.training:
            return recomputed(self._forward, hidden, starts, randomness=self.execution.randomness)
        return self._forward(hidden, starts)

    def _forward(self, hidden: Tensor, starts: Tensor | None) -> Tensor:
        attended = self._dropped(self.self_attention(self.input_layernorm(hidden), starts), "attention")
        hidden, normalised = self.post_attention_layernorm.after_sum(hidden, attended)
        return hidden + self._dropped(self.mlp(normalised), "mlp")

    def _dropped(self, branch: Tensor, place: str) -> Tensor:
        return self.execution.dropped(branch, self.dropout, f"{self.name}.{place}") if self.training else branch
