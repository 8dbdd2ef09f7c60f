"""Memory of one process, by part, in bytes.

Weights, gradients and optimizer state follow from the precision and ZeRO stage 1. Activations are what a block keeps
for backward (arXiv 2205.05198, section 4), counted for these layers: attention is fused, so no scores are kept, and
dropout is a hash, so no mask is. Per position and in units of the hidden size a block keeps

    replicated over tensor-parallel processes   its input, that of the second norm, and the outputs of both: 4
    shared among them                           queries, keys, values 3, attention 1 and its copy in order 1, the
                                                feed-forward part before and after GeLU 8: 13
"""

from __future__ import annotations

from dataclasses import dataclass

from train.config import TrainConfig
from train.model.shape import Shape, parameter_count
from train.parallel.layout import Layout

_WIDTH = {"fp32": 4, "bf16": 2, "fp16": 2, "bf16-stochastic": 2}
_GRADIENT = {"fp32": 4, "bf16": 4, "fp16": 2, "bf16-stochastic": 4}  # BLOOM's bf16: summed in float32
_STATE = 12  # float32 weights and two moments, shared by data-parallel processes
_REPLICATED, _SHARED = 4, 13
_LOGITS_AT_ONCE = 1 << 30  # elements; see train.model.loss


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one process of one pipeline stage."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    loss: float

    @property
    def state(self) -> float:
        """What is there before the first sample."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> float:
        return self.state + self.activations + self.loss


def stage_blocks(layers: int, stages: int) -> list[int]:
    """Transformer blocks of each stage; the embedding counts as one on the first, the head as one on the last."""
    whole, more = divmod(layers + 2, stages)
    counts = [whole + (stage < more) for stage in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    return counts


def stage_parameters(shape: Shape, layout: Layout, stage: int) -> float:
    """Parameters of one process of a stage; the tied matrix is on the first stage and on the last."""
    h, tensor = shape.hidden, layout.tensor
    # What is cut (also biases of cut outputs), and what is not (norms, biases of whole outputs).
    cut, whole = (12 * h * h + 7 * h, 6 * h) if shape.kind == "bloom" else (13 * h * h + 2 * h, 2 * h)
    block = cut / tensor + whole
    found = stage_blocks(shape.layers, layout.pipeline)[stage] * block
    ends = (stage == 0) + (stage == layout.pipeline - 1 and layout.pipeline > 1)
    found += ends * shape.vocabulary * h / tensor
    norm = 2 * h if shape.kind == "bloom" else h
    if stage == 0 and shape.kind == "bloom":
        found += norm
    return found + (norm if stage == layout.pipeline - 1 else 0)


def kept_by_block(shape: Shape, config: TrainConfig, layout: Layout) -> float:
    """Bytes of activations that one block keeps for one micro-batch."""
    positions = config.micro_batch * config.sequence_length
    replicated = _REPLICATED / (layout.tensor if config.sequence_parallel else 1)
    if config.activation_checkpointing == "full":
        kept = 1.0 / (layout.tensor if config.sequence_parallel else 1)
    else:
        # `selective` recomputes attention from queries, keys and values: its output is kept once, in order.
        kept = replicated + (_SHARED - (config.activation_checkpointing == "selective")) / layout.tensor
    return kept * positions * shape.hidden * _WIDTH[config.precision]


def stage_memory(shape: Shape, config: TrainConfig, layout: Layout, stage: int) -> Memory:
    """Memory of a process of a pipeline stage while it trains; 1F1B keeps `pipeline - stage` micro-batches alive."""
    parameters, width = stage_parameters(shape, layout, stage), _WIDTH[config.precision]
    alive = min(layout.pipeline - stage, config.global_batch // (config.micro_batch * layout.data))
    blocks = stage_blocks(shape.layers, layout.pipeline)[stage]
    kept = kept_by_block(shape, config, layout)
    activations = alive * blocks * kept
    positions = config.micro_batch * config.sequence_length
    if config.activation_checkpointing == "full" and blocks:  # one block at a time is computed again
        again = config.model_copy(update={"activation_checkpointing": "none"})
        activations += kept_by_block(shape, again, layout)
    # Between stages: the input of each micro-batch alive and the gradient that goes back.
    activations += (alive + 1) * positions * shape.hidden * width
    loss = 0.0
    if stage == layout.pipeline - 1:
        rows = shape.vocabulary / layout.tensor
        logits = min(positions * rows, _LOGITS_AT_ONCE)
        loss = 2 * logits * width + 4 * rows * shape.hidden + positions * shape.hidden * width
    return Memory(
        parameters * width,
        parameters * _GRADIENT[config.precision],
        parameters * _STATE / layout.data,
        activations,
        loss,
    )


def largest_memory(shape: Shape, config: TrainConfig, layout: Layout) -> Memory:
    """Of the stage that needs most."""
    stages = [stage_memory(shape, config, layout, stage) for stage in range(layout.pipeline)]
    return max(stages, key=lambda one: one.total)


def bytes_per_parameter(precision: str, data: int) -> float:
    """Weights, gradients and optimizer state of one parameter in one process."""
    return _WIDTH[precision] + _GRADIENT[precision] + _STATE / data


def inference_memory(shape: Shape, length: int, batch: int, width: int = 2) -> dict[str, float]:
    """Bytes of weights and of cached keys and values of `batch` texts of `length` tokens, over all processes."""
    cache = 2.0 * shape.layers * shape.hidden * length * batch * width
    return {"weights": float(parameter_count(shape) * width), "cache": cache}
