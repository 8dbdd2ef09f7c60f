"""What changes during a run: the learning rate and the batch size, both functions of consumed samples.

Counting samples instead of steps makes the schedule independent of the batch size, and a resumed run needs
nothing but the number of samples it has consumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LearningRate:
    """Linear warm-up from `start`, then decay to a floor that holds for the rest (all in samples)."""

    peak: float
    floor: float
    warmup: int
    decay: int
    style: Literal["cosine", "linear", "constant"] = "cosine"
    start: float = 0.0

    def __call__(self, consumed: int) -> float:
        """The rate of a step that begins after `consumed` samples; the very first step has rate `start` if there
        is a warm-up."""
        if self.warmup > 0 and consumed <= self.warmup:
            return self.start + (self.peak - self.start) * float(consumed) / float(self.warmup)
        if self.style == "constant":
            return self.peak
        if consumed > self.decay:
            return self.floor
        done = float(consumed - self.warmup) / float(self.decay - self.warmup)
        left = 1.0 - done if self.style == "linear" else 0.5 * (math.cos(math.pi * done) + 1.0)
        return self.floor + left * (self.peak - self.floor)


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
