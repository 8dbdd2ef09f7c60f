"""Memory of one process, by part, in bytes, and its peak.

Weights, gradients and optimizer state follow from the precision and ZeRO stage 1. Activations are what a block keeps
for backward (arXiv 2205.05198, section 4), counted for these layers: attention is fused, so no scores are kept, and
dropout is a hash, so no mask is. Per position and in units of the hidden size a block keeps

    replicated over tensor-parallel processes   its input, that of the second norm, and the outputs of both: 4
    shared among them                           queries, keys, values 3, attention 1 and its copy in order 1 (none on
                                                a CPU, whose kernel leaves it in order), the feed-forward part before
                                                and after GeLU 8: 13

Not all parts are alive at the same time. The peak is the largest of four moments of a step: the loss, the first block
on the way back, the last one with the gradient of the embedding, and the update (see `_peak`). What libraries hold
outside of tensors is not counted.
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
_BACKWARD = 6  # gradients of a block's output, and of the feed-forward part on both sides of GeLU, in turn
_LOGITS_AT_ONCE = {"cpu": 1 << 23, "cuda": 1 << 30}  # elements; see train.model.loss
_BUCKET = 500_000_000  # gradients that DeepSpeed reduces at once


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one process of one pipeline stage. `update` holds the copies that the optimizer's step makes."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    loss: float
    update: float
    total: float  # the peak: less than the sum, because not all is there at the same time

    @property
    def state(self) -> float:
        """What is there before the first sample."""
        return self.weights + self.gradients + self.optimizer


def stage_blocks(layers: int, stages: int) -> list[int]:
    """Transformer blocks of each stage; the embedding counts as one on the first, the head as one on the last."""
    whole, more = divmod(layers + 2, stages)
    counts = [whole + (stage < more) for stage in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    return counts


def _block_parameters(shape: Shape, tensor: int) -> float:
    h = shape.hidden
    # What is cut (also biases of cut outputs), and what is not (norms, biases of whole outputs).
    cut, whole = (12 * h * h + 7 * h, 6 * h) if shape.kind == "bloom" else (13 * h * h + 2 * h, 2 * h)
    return cut / tensor + whole


def stage_parameters(shape: Shape, layout: Layout, stage: int) -> float:
    """Parameters of one process of a stage; the tied matrix is on the first stage and on the last."""
    h = shape.hidden
    found = stage_blocks(shape.layers, layout.pipeline)[stage] * _block_parameters(shape, layout.tensor)
    ends = (stage == 0) + (stage == layout.pipeline - 1 and layout.pipeline > 1)
    found += ends * shape.vocabulary * h / layout.tensor
    norm = 2 * h if shape.kind == "bloom" else h
    if stage == 0 and shape.kind == "bloom":
        found += norm
    return found + (norm if stage == layout.pipeline - 1 else 0)


def kept_by_block(shape: Shape, config: TrainConfig, layout: Layout, device: str = "cuda") -> float:
    """Bytes of activations that one block keeps for one micro-batch."""
    positions = config.micro_batch * config.sequence_length
    replicated = _REPLICATED / (layout.tensor if config.sequence_parallel else 1)
    if config.activation_checkpointing == "full":
        kept = 1.0 / (layout.tensor if config.sequence_parallel else 1)
    else:
        # `selective` recomputes attention from queries, keys and values: its output is kept once, in order.
        once = config.activation_checkpointing == "selective" or device == "cpu"
        kept = replicated + (_SHARED - once) / layout.tensor
    return kept * positions * shape.hidden * _WIDTH[config.precision]


def stage_memory(shape: Shape, config: TrainConfig, layout: Layout, stage: int, device: str = "cuda") -> Memory:
    """Memory of a process of a pipeline stage while it trains; 1F1B keeps `pipeline - stage` micro-batches alive.

    `device` is cuda or cpu: they compute attention and loss differently.
    """
    parameters, width = stage_parameters(shape, layout, stage), _WIDTH[config.precision]
    micro_batches = config.global_batch // (config.micro_batch * layout.data)
    alive, blocks = min(layout.pipeline - stage, micro_batches), stage_blocks(shape.layers, layout.pipeline)[stage]
    last = stage == layout.pipeline - 1
    unit = config.micro_batch * config.sequence_length * shape.hidden * width  # hidden states of a micro-batch
    block = kept_by_block(shape, config, layout, device)
    kept = alive * blocks * block + _around_blocks(shape, config, layout, stage, alive, device)
    backward = float(_BACKWARD * unit)
    if config.activation_checkpointing == "full" and blocks:  # one block at a time is computed again
        again = config.model_copy(update={"activation_checkpointing": "none"})
        backward += kept_by_block(shape, again, layout, device) - block
    weights, gradients = parameters * width, parameters * _GRADIENT[config.precision]
    optimizer = parameters * _STATE / layout.data
    loss = _loss(shape, config, layout, device) if last else 0.0
    update = _update(parameters, config, layout, device)
    # Micro-batches are added up in what is there; of a single one gradients appear as backward goes on.
    summed = gradients if micro_batches > 1 or config.precision.startswith("bf16") else 0.0
    head = 4 * shape.vocabulary / layout.tensor * shape.hidden if last else 0.0
    embedding = (width + 4 * (width < 4)) * shape.vocabulary / layout.tensor * shape.hidden if stage == 0 else 0.0
    peak = max(
        summed + kept + loss,
        max(summed, head) + kept + backward,
        gradients + max(embedding, block + backward) + (kept - blocks * block if alive == 1 else 0.0),
        gradients + update,
    )
    return Memory(weights, gradients, optimizer, kept + backward, loss, update, weights + optimizer + peak)


def _around_blocks(shape: Shape, config: TrainConfig, layout: Layout, stage: int, alive: int, device: str) -> float:
    """Activations beside those of the blocks."""
    width = _WIDTH[config.precision]
    unit = config.micro_batch * config.sequence_length * shape.hidden * width
    found = 0.0
    if layout.pipeline > 1:  # the input of each micro-batch alive and the gradient that goes back
        found += (alive + 1) * unit
    if stage == 0 and shape.kind == "bloom":
        found += alive * unit  # what the norm of the embedding reads
    if stage == layout.pipeline - 1:
        found += 2 * unit  # what the last norm reads and gives
    if device == "cpu" and shape.kind == "bloom":  # ALiBi as a mask for each head, made once
        found += shape.heads / layout.tensor * config.sequence_length**2 * width
    return found


def _loss(shape: Shape, config: TrainConfig, layout: Layout, device: str) -> float:
    """Logits, their slopes, and the gradients that the loss keeps, of the last stage; see train.model.loss."""
    width, positions = _WIDTH[config.precision], config.micro_batch * config.sequence_length
    rows, limit = shape.vocabulary / layout.tensor, _LOGITS_AT_ONCE[device]
    chunks = min(positions, -(-positions * rows // limit))
    elements, matrix = positions / chunks * rows, rows * shape.hidden
    wide = device == "cpu" and width < 4  # a CPU computes the softmax in float32
    held = elements * (width + 4 * wide)  # of one chunk; the next one's logits are made while it is there
    product = matrix * ((4 + width * (device == "cpu")) if width < 4 else 0)
    gradient = 4 * matrix if chunks > 1 or width == 4 else 0
    return max(2 * held if chunks > 1 else held, held + product) + gradient + positions * shape.hidden * width


def _update(parameters: float, config: TrainConfig, layout: Layout, device: str) -> float:
    """Copies beside the gradients while these are reduced and applied."""
    width = _GRADIENT[config.precision]
    bucket = min(parameters, _BUCKET)
    if config.precision.startswith("bf16"):  # a bucket of float32, and the same in bfloat16, which travels
        return bucket * (4 + 2)
    share = parameters / layout.data
    own = share * (width + (4 if width < 4 else 0))  # this process's part in one piece, then in float32
    if layout.data == 1:
        return own
    # A copy of what is reduced, and what remains of it. DeepSpeed reserves two buckets of full size; memory of a CPU is
    # only taken where it is written, and there the gradients move into the bucket.
    reserved = 0 if device == "cpu" else 2 * _BUCKET
    return max(own, (bucket + share + reserved) * width)


def largest_memory(shape: Shape, config: TrainConfig, layout: Layout, device: str = "cuda") -> Memory:
    """Of the stage that needs most."""
    stages = [stage_memory(shape, config, layout, stage, device) for stage in range(layout.pipeline)]
    return max(stages, key=lambda one: one.total)


def bytes_per_parameter(precision: str, data: int) -> float:
    """Weights, gradients and optimizer state of one parameter in one process."""
    return _WIDTH[precision] + _GRADIENT[precision] + _STATE / data


def inference_memory(shape: Shape, length: int, batch: int, width: int = 2) -> dict[str, float]:
    """Bytes of weights and of cached keys and values of `batch` texts of `length` tokens, over all processes."""
    cache = 2.0 * shape.layers * shape.hidden * length * batch * width
    return {"weights": float(parameter_count(shape) * width), "cache": cache}
