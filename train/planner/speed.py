"""Time of a step in a layout, from operations, the pipeline's bubble and the bytes that travel.

Blocks and head cost their published operations (arXiv 2104.04473, section 5.1: 24 h^2 + 4 h s and 2 V h a token,
forward) at the GPU's peak times its efficiency; backward costs twice that, recomputation the blocks' forward pass once
more. Tensor-parallel processes exchange four all-reduces a block and micro-batch (six with full recomputation), each
2 (t - 1) / t of the hidden states (arXiv 1909.08053, section 3); stages hand hidden states on; data-parallel processes
reduce gradients and gather weights once a step. A group that fits into a node uses its links, others share the node's
network. Nothing overlaps: a pessimistic assumption for the exchange of gradients, a fair one for tensor parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train.config import TrainConfig
from train.model.shape import Shape, model_flops_per_token, parameter_count
from train.parallel.layout import Layout
from train.planner.hardware import Hardware
from train.planner.memory import stage_blocks

_GB = 1e9


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step at the full batch, by cause."""

    compute: float
    bubble: float
    tensor: float
    pipeline: float
    data: float
    bubble_share: float  # of the time in which the mean stage could work

    @property
    def total(self) -> float:
        return self.compute + self.bubble + self.tensor + self.pipeline + self.data


def bubble_share(stages: int, micro_batches: int) -> float:
    """Share of a step in which one of equal stages waits: (p - 1) / (m + p - 1) (arXiv 2104.04473, section 2.2)."""
    return (stages - 1) / (micro_batches + stages - 1)


def bubble_seconds(stages: Sequence[float], micro_batches: int) -> float:
    """Seconds of a step in which the mean stage waits, if a micro-batch takes `stages` seconds in each.

    The first micro-batch passes through all stages, the others follow at the pace of the longest one. With equal stages
    it is (p - 1) / m of the time in which a stage works.
    """
    return sum(stages) + (micro_batches - 1) * max(stages) - micro_batches * sum(stages) / len(stages)


def step_time(shape: Shape, config: TrainConfig, layout: Layout, hardware: Hardware) -> StepTime:
    """Predicted seconds of a step of the full global batch."""
    micro_batches = config.global_batch // (config.micro_batch * layout.data)
    block, head, reduce, transfer = _pieces(shape, config, layout, hardware)
    full = config.activation_checkpointing == "full"
    compute = micro_batches * (shape.layers * (4 if full else 3) * block + 3 * head) / layout.pipeline
    tensor = micro_batches * (6 if full else 4) * shape.layers / layout.pipeline * reduce
    pipeline = 2 * micro_batches * transfer if layout.pipeline > 1 else 0.0
    parameters = parameter_count(shape) / (layout.tensor * layout.pipeline)
    gradient = 2 if config.precision == "fp16" else 4
    speed = _speed(hardware, near=layout.tensor * layout.data <= hardware.node.gpus)
    data = 2 * (layout.data - 1) / layout.data * parameters * (gradient + _width(config)) / 2 / speed
    forward, backward, _ = stage_seconds(shape, config, layout, hardware)
    bubble = bubble_seconds([sum(both) for both in zip(forward, backward, strict=True)], micro_batches)
    return StepTime(compute, bubble, tensor, pipeline, data, bubble / (compute + tensor + bubble))


def stage_seconds(
    shape: Shape, config: TrainConfig, layout: Layout, hardware: Hardware
) -> tuple[list[float], list[float], float]:
    """Seconds of a micro-batch in each stage, forward and backward, and of a transfer between two stages.

    Stages are as long as their blocks; the last one also has the head, which nobody recomputes.
    """
    block, head, reduce, transfer = _pieces(shape, config, layout, hardware)
    again = config.activation_checkpointing == "full"
    forward, backward = [], []
    for stage, blocks in enumerate(stage_blocks(shape.layers, layout.pipeline)):
        last = stage == layout.pipeline - 1
        forward.append(blocks * (block + 2 * reduce) + last * head)
        backward.append(blocks * ((2 + again) * block + (2 + 2 * again) * reduce) + last * 2 * head)
    return forward, backward, transfer


def _pieces(shape: Shape, config: TrainConfig, layout: Layout, hardware: Hardware) -> tuple[float, float, float, float]:
    """Seconds of a micro-batch: a block's forward pass, the head's, an all-reduce, a transfer between stages."""
    h, positions = shape.hidden, config.micro_batch * config.sequence_length
    rate = layout.tensor * hardware.peak(config.precision) * hardware.efficiency
    block = positions * (24.0 * h * h + 4.0 * h * config.sequence_length) / rate
    head = positions * 2.0 * shape.vocabulary * h / rate
    hidden = positions * h * _width(config)
    inside = _speed(hardware, near=layout.tensor <= hardware.node.gpus)
    reduce = 2 * (layout.tensor - 1) / layout.tensor * hidden / inside
    transfer = hidden / layout.tensor / _speed(hardware, near=layout.processes <= hardware.node.gpus)
    return block, head, reduce, transfer


def _width(config: TrainConfig) -> int:
    return 4 if config.precision == "fp32" else 2


def _speed(hardware: Hardware, *, near: bool) -> float:
    """Bytes a second of one GPU, within its node or beyond."""
    node = hardware.node
    return _GB * (node.link_gbytes if near else node.network_gbytes / node.gpus)


def utilisation(shape: Shape, config: TrainConfig, layout: Layout, hardware: Hardware, seconds: float) -> float:
    """Model FLOPs of a step over what the GPUs could do in `seconds`."""
    flops = config.global_batch * config.sequence_length * model_flops_per_token(shape, config.sequence_length)
    return flops / seconds / layout.processes / hardware.peak(config.precision)


def gopher_flops(
    shape: Shape, length: int, tokens: float, *, embeddings: bool = True, recomputed: bool = False
) -> float:
    """Operations of a run as the authors of Gopher count them (arXiv 2203.15556, appendix F).

    Forward of a sequence: 2 s V d for the embedding and for the logits; in a layer 6 s d a, 2 s^2 a twice, 3 heads s^2,
    2 s a d and 4 s d f with a = d and f = 4 d. Backward is twice that; recomputation adds another forward.
    """
    s, d = float(length), float(shape.hidden)
    layer = 6 * s * d * d + 4 * s * s * d + 3 * shape.heads * s * s + 2 * s * d * d + 16 * s * d * d
    forward = shape.layers * layer + (4 * s * shape.vocabulary * d if embeddings else 0.0)
    return forward * (4 if recomputed else 3) * tokens / length
