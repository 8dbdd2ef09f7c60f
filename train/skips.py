"""Samples that a run passes over, and the position in the data that results.

A run is at a position in the mixture's samples. Skipped samples are passed: the position, and with it the learning
rate and the batch size, moves on as if they had been trained on, and every other sample is read where it would have
been without the skip. (BLOOM's program could leave out steps, but did not count what it had left out.)

Ranges come from a recipe (`skip_samples`) or from a roll-back (`RUN/model/skipped.json`, see `train.spikes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from train.schedule import BatchSize


@dataclass(frozen=True, slots=True)
class Skips:
    """Ranges [first, end) of samples, sorted and apart from each other; make them with `of`."""

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(ranges: Iterable[Sequence[int]]) -> Skips:
        """Sort and join ranges; empty ones are dropped."""
        joined: list[tuple[int, int]] = []
        for first, end in sorted((int(first), int(end)) for first, end in ranges):
            if end <= first:
                continue
            if joined and first <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((first, end))
        return Skips(tuple(joined))

    def and_also(self, first: int, end: int) -> Skips:
        """These ranges and one more."""
        return Skips.of([*self.ranges, (first, end)])

    def below(self, position: int) -> list[list[int]]:
        """What a run that has reached `position` has passed over."""
        return [[first, min(end, position)] for first, end in self.ranges if first < position]

    def end_of(self, position: int, count: int) -> int:
        """The position after the next `count` samples that are not skipped."""
        for first, end in self.ranges:
            if end <= position:
                continue
            if position + count <= first:
                break
            count -= max(0, first - position)
            position = end
        return position + count

    def numbers(self, position: int, count: int) -> npt.NDArray[np.int64]:
        """The numbers of the next `count` samples from `position` on, int64 [count]."""
        stop = self.end_of(position, count)
        found = np.arange(position, stop, dtype=np.int64)
        for first, end in self.ranges:
            if first < stop and end > position:
                found = found[(found < first) | (found >= end)]
        return found


def count_steps(batch: BatchSize, skips: Skips, samples: int) -> int:
    """Steps of a run over `samples` samples with these skips."""
    if not skips.ranges:
        return batch.steps(samples)
    steps, position = 0, 0
    while (position := skips.end_of(position, batch(position))) <= samples:
        steps += 1
    return steps


def continues(before: Any, now: Any, samples: int) -> bool:
    """Whether a run that has skipped `before` up to sample `samples` may go on with `now`."""
    return Skips.of(before or []).below(samples) == Skips.of(now or []).below(samples)
