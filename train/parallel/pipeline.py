"""The model as a DeepSpeed pipeline: layers cut into stages, loss on the last one.

Embedding and head count as blocks when stages are balanced: BLOOM-176B's 70 layers + 2 = 72 = 12 stages of 6.
One process is a pipeline of one stage, so every layout runs the same code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from roots_pipeline.core.errors import TrainingError
from train.data import StartsOf
from train.model.architecture import TIED, model_layers
from train.model.documents import Documents
from train.model.layers import Execution, Recomputation
from train.model.loss import vocabulary_loss
from train.model.randomness import Randomness
from train.model.shape import Shape
from train.parallel.backend import PipelineModule, quiet_deepspeed, universal
from train.parallel.tensor import whole_sequence
from train.parallel.topology import Place

STAGES_BALANCED_BY = "type:TransformerBlock|VocabularyEmbedding"


class ModelPipeline(PipelineModule):  # type: ignore[misc]
    """This process's stage of the model."""

    def __init__(
        self, shape: Shape, place: Place, *, recompute: Recomputation = "none", sequence_parallel: bool = False
    ) -> None:
        self.shape, self.place = shape, place
        self.randomness, self.documents = Randomness(shape.seed), Documents()
        self._micro_batches = 0
        self._samples = np.arange(0)
        self._starts_of: StartsOf | None = None
        self._labels: float | None = None
        self.parallel = replace(place.tensor, sequence=sequence_parallel)
        with quiet_deepspeed():
            # Recomputation is the layers' own business: DeepSpeed's would not know which samples to repeat.
            super().__init__(
                layers=model_layers(shape, Execution(self.parallel, self.randomness, recompute, self.documents)),
                topology=place.grid.topology(),
                partition_method=STAGES_BALANCED_BY,
                activation_checkpoint_interval=0,
            )
        self.loss_fn = self.loss

    def begin_step(
        self, samples: npt.NDArray[np.int64], starts_of: StartsOf | None = None, labels: float | None = None
    ) -> None:
        """The step or evaluation that follows reads these samples, in this order; dropout depends on them.

        `starts_of` tells where the documents of some samples begin, if attention is to stay within them; `labels` how
        many labels of a micro-batch count, over the whole step on average, if not all do.
        """
        self._samples, self._starts_of, self._labels, self._micro_batches = samples, starts_of, labels, 0

    def forward(self, inputs: Tensor) -> Tensor:
        """This stage's layers on one micro-batch; every stage sees the micro-batches in the same order."""
        drops = self.training and self.shape.dropout > 0.0
        if not drops and self._starts_of is None:
            return super().forward(inputs)  # type: ignore[no-any-return]
        # As `train.data.micro_batches` deals them out.
        number = self._micro_batches * self.place.layout.data + self.place.data_rank
        first = number * len(inputs)
        self._micro_batches += 1
        samples = self._samples[first : first + len(inputs)]
        starts = None if self._starts_of is None else self._starts_of(samples).to(inputs.device)
        with self.randomness.of(torch.from_numpy(samples).to(inputs.device)), self.documents.of(starts):
            return super().forward(inputs)  # type: ignore[no-any-return]

    def loss(self, hidden: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of the last stage's hidden states, whose mean over micro-batches is that over all labels.

        DeepSpeed adds the micro-batches up and divides by their number, in losses and gradients, and takes the mean
        over data-parallel processes. So each is divided by the labels of an average one, not by its own.
        """
        whole = whole_sequence(hidden, self.parallel)
        return vocabulary_loss(whole, self.tied_modules[TIED].weight, labels, self.parallel, self._labels)

    def _synchronize_tied_weights(self) -> None:
        # Making both copies of the tied matrix equal is no part of what gradients flow through.
        with torch.no_grad():
            super()._synchronize_tied_weights()

    def universal_checkpoint_info(self) -> dict[str, Any]:
        """What DeepSpeed needs to convert a checkpoint to another layout; names are as in its checkpoints."""
        vocabulary = rf"tied_modules\.{TIED}\.weight"
        norms = (r"\d+\.norm\.", r"\d+\.input_layernorm\.", r"\d+\.post_attention_layernorm\.")
        outputs = r"\d+\.(self_attention\.dense|mlp\.dense_4h_to_h)"
        own = r"(weight|bias)" if self.shape.kind == "bloom" else "weight"
        replicated = [f"{norm}{own}" for norm in norms]
        if self.shape.kind == "bloom":
            replicated.append(rf"{outputs}\.bias")
        return {
            universal.UNIVERSAL_CHECKPOINT_VERSION_KEY: universal.UNIVERSAL_CHECKPOINT_VERSION_VALUE,
            universal.ORIGINAL_VOCAB_SIZE: self.shape.vocabulary,
            universal.PADDED_VOCAB_SIZE: self.shape.vocabulary,
            universal.VOCABULARY_PARAMETER_PATTERNS: [vocabulary],
            universal.PIPELINE_REPLICATED_PARAMETER_PATTERNS: [vocabulary],
            universal.TP_REPLICATED_PARAMETER_PATTERNS: replicated,
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
