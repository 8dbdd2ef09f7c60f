"""Random numbers that are a function of what they are for: dropout that does not depend on the layout.

A generator's numbers depend on everything drawn before, so on how a model is cut, on the size of a micro-batch and
on recomputation. Here number i of a stream is a hash of the stream's key and i (SplitMix64, Steele et al. 2014,
OOPSLA, "Fast splittable pseudorandom number generators"). The key comes from the seed, the name of the place in the
model, the number of the sample in the run, and the head: whoever computes that part of that sample, whenever and
on whatever device, draws the same numbers. Four 16-bit numbers come out of each hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import xxhash
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from roots_pipeline.core.errors import TrainingError

# The constants of SplitMix64 as signed 64-bit numbers.
_STEP, _FIRST, _SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
_NUMBERS_PER_HASH = 4


def mixed(state: Tensor) -> Tensor:
    """SplitMix64's output function on int64: a bijection whose every output bit depends on every input bit."""
    # `>>` repeats the sign bit; the masks make it a logical shift.
    state = (state ^ ((state >> 30) & 0x3FFFFFFFF)) * _FIRST
    state = (state ^ ((state >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return state ^ ((state >> 31) & 0x1FFFFFFFF)


def random_bits(keys: Tensor, first: int, count: int) -> Tensor:
    """Numbers `first` to `first + count` of each stream: int16 [..., count], uniform, for int64 keys [...]."""
    start, stop = first // _NUMBERS_PER_HASH, -(-(first + count) // _NUMBERS_PER_HASH)
    counters = torch.arange(start, stop, device=keys.device) * _STEP
    numbers = mixed(keys[..., None] + counters).view(torch.int16)
    skipped = first - _NUMBERS_PER_HASH * start
    return numbers[..., skipped : skipped + count]


def bits_at(key: int, numbers: Tensor) -> Tensor:
    """One number in 0 ... 65,535 for each of `numbers` (int64), as int32, from the stream `key`."""
    return (mixed(key + numbers * _STEP) & 0xFFFF).to(torch.int32)


def name_key(seed: int, name: str) -> int:
    """A signed 64-bit key for a place in the model."""
    return xxhash.xxh3_64_intdigest(f"{seed}:{name}") - 2**63


class Randomness:
    """Which samples this process is computing, and the dropout that follows from that."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.samples: Tensor | None = None  # their numbers in the run, int64 [micro-batch]

    @contextmanager
    def of(self, samples: Tensor | None) -> Iterator[None]:
        """Inside, dropout is that of `samples`."""
        before, self.samples = self.samples, samples
        try:
            yield
        finally:
            self.samples = before

    def keys(self, name: str, device: torch.device) -> Tensor:
        """A key for each sample at the place `name`: int64 [micro-batch]."""
        if self.samples is None:
            raise TrainingError(
                "dropout was asked for without saying for which samples.",
                hint="Call the model's begin_step before each training step.",
            )
        return mixed(self.samples.to(device) * _STEP + name_key(self.seed, name))

    def drop(self, values: Tensor, rate: float, name: str, *, first: int = 0) -> Tensor:
        """Dropout of [micro-batch, ...]; `first` is the number of the first value in the whole sample's."""
        if rate == 0.0:
            return values
        numbers = random_bits(self.keys(name, values.device), first, values[0].numel())
        return _keep(values, numbers.view(values.shape), rate)

    def drop_by_head(self, values: Tensor, rate: float, name: str, *, first: int = 0) -> Tensor:
        """Dropout of [micro-batch, heads, ...], where `first` is the number of the first head."""
        if rate == 0.0:
            return values
        heads = torch.arange(first, first + values.shape[1], device=values.device)
        keys = mixed(self.keys(name, values.device)[:, None] ^ (heads * _FIRST))
        return _keep(values, random_bits(keys, 0, values[0, 0].numel()).view(values.shape), rate)


def _keep(values: Tensor, numbers: Tensor, rate: float) -> Tensor:
    """Zero where a number is among the lowest `rate` of all 65,536, otherwise scaled to keep the mean."""
    dropped = round(rate * 65536)
    return torch.where(numbers >= dropped - 32768, values * (65536 / (65536 - dropped)), 0.0)


def recomputed(function: Callable[..., Tensor], *inputs: Tensor | None, randomness: Randomness) -> Tensor:
    """Activation checkpointing: what `function` computes, but it keeps only its inputs and runs again in backward.

    The second run happens when the process has moved on to other samples, and is given those of the first.
    """
    samples = randomness.samples

    def again(*inputs: Tensor | None) -> Tensor:
        with randomness.of(samples):
            return function(*inputs)

    result: Tensor = checkpoint(again, *inputs, use_reentrant=False, preserve_rng_state=False)
    return result
