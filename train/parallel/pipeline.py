"""The model as a DeepSpeed pipeline: layers cut into stages, loss on the last one.

Embedding and head count as blocks when stages are balanced: BLOOM-176B's 70 layers + 2 = 72 = 12 stages of 6.
One process is a pipeline of one stage, so every layout runs the same code.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from roots_pipeline.core.errors import TrainingError
from train.model.bloom import TIED, bloom_layers
from train.model.loss import vocabulary_loss
from train.model.shape import Shape
from train.parallel.backend import PipelineModule, quiet_deepspeed, universal
from train.parallel.topology import Place

_BLOCKS = "type:BloomBlock|VocabularyEmbedding"


class BloomPipeline(PipelineModule):  # type: ignore[misc]
    """This process's stage of the model."""

    def __init__(self, shape: Shape, place: Place, *, activation_checkpointing: bool) -> None:
        self.shape, self.place = shape, place
        with quiet_deepspeed():
            super().__init__(
                layers=bloom_layers(shape, place.tensor),
                topology=place.grid.topology(),
                partition_method=_BLOCKS,
                activation_checkpoint_interval=1 if activation_checkpointing else 0,
                checkpointable_layers=["BloomBlock"],
            )
        self.loss_fn = self.loss

    def loss(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of the last stage's hidden states."""
        return vocabulary_loss(hidden, self.tied_modules[TIED].weight, labels, self.place.tensor)

    def _synchronize_tied_weights(self) -> None:
        # Making both copies of the tied matrix equal is no part of what gradients flow through.
        with torch.no_grad():
            super()._synchronize_tied_weights()

    def universal_checkpoint_info(self) -> dict[str, Any]:
        """What DeepSpeed needs to convert a checkpoint to another layout; names are as in its checkpoints."""
        vocabulary = rf"tied_modules\.{TIED}\.weight"
        norms = (r"\d+\.norm\.", r"\d+\.input_layernorm\.", r"\d+\.post_attention_layernorm\.")
        outputs = r"\d+\.(self_attention\.dense|mlp\.dense_4h_to_h)"
        return {
            universal.UNIVERSAL_CHECKPOINT_VERSION_KEY: universal.UNIVERSAL_CHECKPOINT_VERSION_VALUE,
            universal.ORIGINAL_VOCAB_SIZE: self.shape.vocabulary,
            universal.PADDED_VOCAB_SIZE: self.shape.vocabulary,
            universal.VOCABULARY_PARAMETER_PATTERNS: [vocabulary],
            universal.PIPELINE_REPLICATED_PARAMETER_PATTERNS: [vocabulary],
            universal.TP_REPLICATED_PARAMETER_PATTERNS: [
                *(f"{norm}(weight|bias)" for norm in norms),
                rf"{outputs}\.bias",
            ],
            universal.PARAMETER_WITH_ROW_PARALLELISM_PATTERNS: [rf"{outputs}\.weight"],
        }


def check_equal_groups(sizes: list[int]) -> None:
    """Every stage must hold parameters of the same optimizer groups.

    DeepSpeed drops an empty group on the process where it is empty and then reduces the remaining ones one
    by one: a stage without, say, any LayerNorm would wait for the others for ever.
    """
    groups: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(groups, [size > 0 for size in sizes])
    for rank, present in enumerate(groups):
        if not all(present):
            raise TrainingError(
                f"process {rank} holds no parameters of optimizer group {present.index(False)}.",
                hint="Use a smaller train.pipeline_parallel, so that each stage holds at least one block.",
            )
