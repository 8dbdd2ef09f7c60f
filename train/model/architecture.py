"""A model as a list of layers for the pipeline, and what its parameters are called on disk.

    word embedding - LayerNorm - blocks - LayerNorm - head (the word embedding again)       BLOOM
    word embedding - dropout   - blocks - RMSNorm   - head (the word embedding again)       Gopher

The embedding and the head are one tied matrix: on the first and the last stage it is the same layer, and only that
matrix is tied; what follows the embedding is a layer of its own. The head hands the hidden states on, because
multiplying with the matrix belongs to the loss (see `train.model.loss`).

Names are those of BLOOM's published weights. Gopher's were never published; its parameters have the same names, and
those of its relative positions are h.N.self_attention.attend.{positions.weight, content_bias, position_bias}.
"""

from __future__ import annotations

import re

from torch import Tensor

from train.model.layers import EmbeddingDropout, EmbeddingNorm, Execution, FinalNorm, TransformerBlock
from train.model.shape import Shape
from train.parallel.backend import LayerSpec, TiedLayerSpec
from train.parallel.tensor import VocabularyEmbedding

TIED = "word_embeddings"

# Along which axis a parameter is cut over tensor-parallel processes; all others are replicated.
_CUT = (
    (re.compile(r"(query_key_value|dense_h_to_4h)\.(weight|bias)$"), 0),
    (re.compile(r"(positions\.weight|content_bias|position_bias)$"), 0),
    (re.compile(r"(self_attention\.dense|dense_4h_to_h)\.weight$"), 1),
    (re.compile(r"^word_embeddings\.weight$"), 0),
)


def partition_dim(name: str) -> int | None:
    """The axis along which the parameter `name` is cut over tensor-parallel processes, or None."""
    return next((dim for pattern, dim in _CUT if pattern.search(name)), None)


def model_layers(shape: Shape, execution: Execution) -> list[LayerSpec]:
    """The layers in order, as recipes that each pipeline stage builds only for its own part."""
    embedding = {"std": shape.init_std, "seed": shape.seed, "parallel": execution.parallel}
    arguments = (TIED, shape.vocabulary, shape.hidden)
    return [
        TiedLayerSpec(TIED, VocabularyEmbedding, *arguments, **embedding),
        LayerSpec(EmbeddingNorm if shape.kind == "bloom" else EmbeddingDropout, shape, execution),
        *(LayerSpec(TransformerBlock, shape, number, execution) for number in range(shape.layers)),
        LayerSpec(FinalNorm, shape, execution),
        TiedLayerSpec(TIED, VocabularyEmbedding, *arguments, forward_fn=_hand_on, **embedding),
    ]


def _hand_on(embedding: VocabularyEmbedding, hidden: Tensor) -> Tensor:
    return hidden


def parameter_prefix(position: int, layers: int) -> str:
    """Prefix of the published parameter names for the layer at `position` in the list of `model_layers`."""
    if position == 0:
        return f"{TIED}."
    if position == 1:
        return "word_embeddings_layernorm."
    if position == layers + 2:
        return "ln_f."
    return f"h.{position - 2}."


def published_name(position: int, layers: int, own: str) -> str:
    """`own` (as in a layer's state) under its published name, for example h.3.mlp.dense_h_to_4h.weight."""
    return parameter_prefix(position, layers) + own.removeprefix("norm.")
