"""Time of a step in a layout, from operations, the pipeline's bubble and the bytes that travel.

Blocks cost their published operations at the GPU's peak times its efficiency. Tensor-parallel processes exchange four
all-reduces a block and micro-batch (six with full recomputation), each 2 (t - 1) / t of the hidden states (arXiv
1909.08053, section 3); stages hand hidden states on; data-parallel processes reduce gradients and gather weights once a
step. A group that fits into a node uses its links, others share the node's network. Nothing overlaps: a pessimistic
assumption for the exchange of gradients, a fair one for tensor parallelism.
"""

from __future__ import annotations

from dataclasses import dataclass

from train.config import TrainConfig
from train.model.shape import Shape, hardware_flops_per_token, model_flops_per_token, parameter_count
from train.parallel.layout import Layout
from train.planner.hardware import Hardware

_GB = 1e9


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step at the full batch, by cause."""

    compute: float
    bubble: float
    tensor: float
    pipeline: float
    data: float
    bubble_share: float  # of the time in which a stage could work

    @property
    def total(self) -> float:
        return self.compute + self.bubble + self.tensor + self.pipeline + self.data


def bubble_share(stages: int, micro_batches: int) -> float:
    """Share of a step in which a stage waits: (p - 1) / (m + p - 1) of 1F1B (arXiv 2104.04473, section 2.2)."""
    return (stages - 1) / (micro_batches + stages - 1)


def step_time(shape: Shape, config: TrainConfig, layout: Layout, hardware: Hardware) -> StepTime:
    """Predicted seconds of a step of the full global batch."""
    tokens = config.global_batch * config.sequence_length
    full = config.activation_checkpointing == "full"
    flops = tokens * hardware_flops_per_token(shape, config.sequence_length, recomputed=full)
    compute = flops / layout.processes / (hardware.peak(config.precision) * hardware.efficiency)
    micro_batches = config.global_batch // (config.micro_batch * layout.data)
    width = 4 if config.precision == "fp32" else 2
    hidden = config.micro_batch * config.sequence_length * shape.hidden * width
    node = hardware.node
    inside = node.link_gbytes * _GB
    outside = node.network_gbytes * _GB / node.gpus
    blocks = shape.layers / layout.pipeline
    reduces = (6 if full else 4) * blocks * micro_batches
    speed = inside if layout.tensor <= node.gpus else outside
    tensor = reduces * 2 * (layout.tensor - 1) / layout.tensor * hidden / speed
    handed = 2 * micro_batches * hidden / layout.tensor if layout.pipeline > 1 else 0.0
    pipeline = handed / (inside if layout.processes <= node.gpus else outside)
    parameters = parameter_count(shape) / (layout.tensor * layout.pipeline)
    gradient = 2 if config.precision == "fp16" else 4
    near = layout.tensor * layout.data <= node.gpus
    data = 2 * (layout.data - 1) / layout.data * parameters * (gradient + width) / 2 / (inside if near else outside)
    share = bubble_share(layout.pipeline, micro_batches)
    bubble = (compute + tensor) * share / (1 - share)
    return StepTime(compute, bubble, tensor, pipeline, data, share)


def utilisation(shape: Shape, config: TrainConfig, layout: Layout, hardware: Hardware, seconds: float) -> float:
    """Model FLOPs of a step over what the GPUs could do in `seconds`."""
    flops = config.global_batch * config.sequence_length * model_flops_per_token(shape, config.sequence_length)
    return flops / seconds / layout.processes / hardware.peak(config.precision)


def gopher_flops(
    layers: int, hidden: int, heads: int, vocabulary: int, length: int, tokens: float, *,
    embeddings: bool = True, recomputed: bool = False,
) -> float:  # fmt: skip
    """Operations of a run as the authors of Gopher count them (arXiv 2203.15556, appendix F).

    Forward of a sequence: 2 s V d for the embedding and for the logits; in a layer 6 s d a, 2 s^2 a twice, 3 heads s^2,
    2 s a d and 4 s d f with a = d and f = 4 d. Backward is twice that; recomputation adds another forward.
    """
    s, d = float(length), float(hidden)
    layer = 6 * s * d * d + 4 * s * s * d + 3 * heads * s * s + 2 * s * d * d + 16 * s * d * d
    forward = layers * layer + (4 * s * vocabulary * d if embeddings else 0.0)
    return forward * (4 if recomputed else 3) * tokens / length
