"""What changes during a run: learning rate, weight decay and batch size, all functions of consumed samples.

Counting samples instead of steps makes the schedule independent of the batch size, and a resumed run needs
nothing but the number of samples it has consumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

DecayStyle = Literal["cosine", "linear", "constant", "inverse_sqrt", "wsd"]
# How a warm-up, stable, decay schedule falls in its last part.
AnnealStyle = Literal["linear", "cosine", "exponential", "minus_sqrt"]
RampStyle = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True, slots=True)
class LearningRate:
    """Linear warm-up from `start`, then decay to a floor that holds for the rest (all in samples).

    `wsd` holds the peak until the last `anneal` samples before `decay` and falls in them (arXiv 2404.06395);
    `inverse_sqrt` falls with the root of the samples and drops to the floor at `decay`. All formulas are those of
    Megatron's scheduler, to the last bit.
    """

    peak: float
    floor: float
    warmup: int
    decay: int
    style: DecayStyle = "cosine"
    start: float = 0.0
    anneal: int = 0
    anneal_style: AnnealStyle = "linear"

    def __call__(self, consumed: int) -> float:
        """The rate of a step that begins after `consumed` samples; the very first step has rate `start` if there
        is a warm-up."""
        if self.warmup > 0 and consumed <= self.warmup:
            return self.start + (self.peak - self.start) * float(consumed) / float(self.warmup)
        if self.style == "constant":
            return self.peak
        if consumed > self.decay:
            return self.floor
        if self.style == "inverse_sqrt":
            return max(self.floor, self.peak * math.pow(max(self.warmup, 1), 0.5) / math.pow(max(consumed, 1), 0.5))
        return self.floor + self._left(consumed) * (self.peak - self.floor)

    def _left(self, consumed: int) -> float:
        """The share of the way from floor to peak."""
        if self.style == "wsd":
            done = (consumed - (self.decay - self.anneal)) / self.anneal
            return 1.0 if done <= 0.0 else _annealed(done, self.anneal_style)
        done = float(consumed - self.warmup) / float(self.decay - self.warmup)
        return 1.0 - done if self.style == "linear" else 0.5 * (math.cos(math.pi * done) + 1.0)


def _annealed(done: float, style: AnnealStyle) -> float:
    if style == "linear":
        return 1.0 - done
    if style == "cosine":
        return 0.5 * (math.cos(math.pi * done) + 1.0)
    return 2.0 * math.pow(0.5, done) - 1.0 if style == "exponential" else 1.0 - math.sqrt(done)


@dataclass(frozen=True, slots=True)
class WeightDecay:
    """From `start` to `end` over `samples` samples, and `end` from then on."""

    start: float
    end: float
    samples: int
    style: RampStyle = "constant"

    def __call__(self, consumed: int) -> float:
        """The decay of a step that begins after `consumed` samples."""
        if self.style == "constant" or consumed > self.samples:
            return self.end
        done = float(consumed) / float(self.samples)
        share = done if self.style == "linear" else 0.5 * (math.cos(math.pi * (1 - done)) + 1.0)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class BatchSize:
    """A global batch that grows by `increment` in equal parts of `ramp_samples` until it is `full`.

    Without a ramp (`start` == `full`) it is constant.
    """

    full: int
    start: int
    increment: int = 0
    ramp_samples: int = 0

    def __call__(self, consumed: int) -> int:
        """Samples of a step that begins after `consumed` samples."""
        if self.start == self.full or consumed > self.ramp_samples:
            return self.full
        # The length of one increment is not a whole number; rounding it would shift the ramp by whole steps.
        length = self.ramp_samples / ((self.full - self.start) // self.increment)
        return min(self.full, self.start + int(consumed / length) * self.increment)

    def steps(self, samples: int) -> int:
        """Steps of a run over `samples`; what is left over at the end is less than one batch and not trained
        on."""
        steps = consumed = 0
        while self(consumed) < self.full and consumed + self(consumed) <= samples:
            consumed += self(consumed)
            steps += 1
        return steps + max(0, samples - consumed) // self.full
