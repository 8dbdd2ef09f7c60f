"""The layers of a BLOOM, each a step of the pipeline: they take and give [batch, length, hidden].

Names of sub-modules are those of the published Hugging Face model, so that exporting is a matter of prefixes.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from train.model.attention import AlibiAttention
from train.model.shape import Shape
from train.parallel.tensor import ColumnParallelLinear, RowParallelLinear, TensorParallel


class EmbeddingNorm(nn.Module):
    """LayerNorm right after the word embedding, which made large BLOOMs train stably; then dropout."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.hidden, shape.epsilon)
        self.dropout = shape.dropout

    def forward(self, hidden: Tensor) -> Tensor:
        return F.dropout(self.norm(hidden), self.dropout, self.training)


class FinalNorm(nn.Module):
    """LayerNorm after the last block."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.hidden, shape.epsilon)

    def forward(self, hidden: Tensor) -> Tensor:
        normalised: Tensor = self.norm(hidden)
        return normalised


class SelfAttention(nn.Module):
    """Queries, keys and values in one matrix, whose rows are [head, (query, key, value), head size]."""

    def __init__(self, shape: Shape, name: str, parallel: TensorParallel) -> None:
        super().__init__()
        self.heads, self.head_size = parallel.share(shape.heads)[1], shape.hidden // shape.heads
        self.query_key_value = ColumnParallelLinear(
            f"{name}.query_key_value",
            shape.hidden,
            3 * shape.hidden,
            std=shape.init_std,
            seed=shape.seed,
            parallel=parallel,
            bias=True,
        )
        self.attend = AlibiAttention(shape.heads, dropout=shape.dropout, parallel=parallel)
        self.dense = RowParallelLinear(
            f"{name}.dense",
            shape.hidden,
            shape.hidden,
            std=shape.output_std,
            seed=shape.seed,
            parallel=parallel,
            bias=True,
        )

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, _ = hidden.shape
        mixed = self.query_key_value(hidden).view(batch, length, self.heads, 3, self.head_size)
        query, key, value = mixed.permute(3, 0, 2, 1, 4)
        attended = self.attend(query, key, value).transpose(1, 2).reshape(batch, length, -1)
        projected: Tensor = self.dense(attended)
        return projected


class FeedForward(nn.Module):
    """hidden -> 4 hidden -> hidden with the tanh approximation of GeLU, as in BLOOM's fused kernel."""

    def __init__(self, shape: Shape, name: str, parallel: TensorParallel) -> None:
        super().__init__()
        self.dense_h_to_4h = ColumnParallelLinear(
            f"{name}.dense_h_to_4h",
            shape.hidden,
            4 * shape.hidden,
            std=shape.init_std,
            seed=shape.seed,
            parallel=parallel,
            bias=True,
        )
        self.dense_4h_to_h = RowParallelLinear(
            f"{name}.dense_4h_to_h",
            4 * shape.hidden,
            shape.hidden,
            std=shape.output_std,
            seed=shape.seed,
            parallel=parallel,
            bias=True,
        )

    def forward(self, hidden: Tensor) -> Tensor:
        projected: Tensor = self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(hidden), approximate="tanh"))
        return projected


class BloomBlock(nn.Module):
    """One pre-LayerNorm transformer block: x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, shape: Shape, number: int, parallel: TensorParallel) -> None:
        super().__init__()
        name = f"h.{number}"
        self.dropout = shape.dropout
        self.input_layernorm = nn.LayerNorm(shape.hidden, shape.epsilon)
        self.self_attention = SelfAttention(shape, f"{name}.self_attention", parallel)
        self.post_attention_layernorm = nn.LayerNorm(shape.hidden, shape.epsilon)
        self.mlp = FeedForward(shape, f"{name}.mlp", parallel)

    def forward(self, hidden: Tensor) -> Tensor:
        attended = self.self_attention(self.input_layernorm(hidden))
        hidden = hidden + F.dropout(attended, self.dropout, self.training)
        fed = self.mlp(self.post_attention_layernorm(hidden))
        return hidden + F.dropout(fed, self.dropout, self.training)
