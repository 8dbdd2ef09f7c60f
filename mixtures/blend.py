"""Blending: which group gives sample number i, and which of its own samples that is.

Why: weights become a fixed sequence in which every prefix is as close to the weights as one group at a time
can be. Rule (helpers.cpp of bigscience-workshop/Megatron-DeepSpeed, same in megatron-core): sample i comes
from the group with the largest w x max(i, 1) - drawn so far; the first wins a tie. All in float64, one
multiplication and one subtraction, because a fused one would decide some ties differently.

A group is never drawn more than ceil(n x w) times in the first n samples, so the targets below always suffice for a
blend of n; `check_draws` proves it for the arrays at hand instead of trusting the argument. With more than two groups
one may fall a little more than one sample behind (1.5 in random trials).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixtures.greedy import draw
from mixtures.indexed import IntArray
from mixtures.order import Variant
from roots_pipeline.core.errors import MixtureError

SURPLUS = 0.005


def normalise(weights: Sequence[float]) -> npt.NDArray[np.float64]:
    """Weights divided by their sum, as numpy sums (pairwise): the last bit matters in ties."""
    values = np.array(weights, np.float64)
    result: npt.NDArray[np.float64] = values / np.sum(values)
    return result


def published_weights(weights: Sequence[float], variant: Variant) -> list[float]:
    """The weights from which the published programs compute their sample targets.

    BigScience adds them up one after the other, megatron-core pairwise; either is normalised again by
    `blend`.
    """
    if variant == "megatron_core":
        return [float(weight) for weight in normalise(weights)]
    total = 0.0
    for weight in weights:
        total += weight
    return [weight / total for weight in weights]


def sample_targets(weights: Sequence[float], samples: int, variant: Variant) -> list[int]:
    """How many samples each group prepares for a blend of `samples`, half a percent more than its share.

    BigScience ceil(n w 1.005); megatron-core ceil(ceil(n w) 1.005).
    """
    shares = published_weights(weights, variant)
    if variant == "megatron_core":
        return [math.ceil(math.ceil(samples * weight) * (1 + SURPLUS)) for weight in shares]
    return [math.ceil(samples * weight * (1 + SURPLUS)) for weight in shares]


@dataclass(frozen=True, slots=True)
class Blend:
    """For each sample its group (int16, int32 beyond 32,768 groups) and its number inside that group.

    `drawn` counts the samples of each group.
    """

    groups: IntArray
    numbers: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.int64]


def blend(weights: Sequence[float], samples: int) -> Blend:
    """The first `samples` samples of a blend by these weights (>= 0, not all 0; normalised here)."""
    return _greedy(normalise(weights), np.full(len(weights), np.iinfo(np.int64).max), samples)


def blend_everything(sizes: Sequence[int]) -> Blend:
    """The blend that serves every sample of groups of these sizes once, in proportion to the sizes."""
    limits = np.array(sizes, np.int64)
    return _greedy(limits / limits.sum(), limits, int(limits.sum()))


def check_draws(names: Sequence[str], drawn: Sequence[int], available: Sequence[int]) -> None:
    """Raise MixtureError if a group is drawn more often than it has samples."""
    for name, wanted, there in zip(names, drawn, available, strict=True):
        if wanted > there:
            raise MixtureError(
                f"group {name} is drawn {wanted} times but holds {there} samples.",
                hint="Lower its weight or the number of samples, or allow it more epochs.",
            )


def _greedy(shares: npt.NDArray[np.float64], limits: npt.NDArray[np.int64], samples: int) -> Blend:
    small = len(shares) <= np.iinfo(np.int16).max + 1
    groups: IntArray = np.zeros(samples, np.dtype(np.int16 if small else np.int32))
    numbers, drawn = np.zeros(samples, np.int64), np.zeros(len(shares), np.int64)
    draw(shares, limits, groups, numbers, drawn)
    return Blend(groups, numbers, drawn)
