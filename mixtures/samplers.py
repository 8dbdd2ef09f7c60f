"""Which sample numbers a data-parallel rank reads, as arithmetic on the samples consumed so far.

Why: the global order of samples must not depend on the number of ranks, the micro-batch or on where a run was
interrupted. A step consumes the next micro_batch x ranks numbers, rank r takes the r-th slice of them.
Nothing is remembered but one number, `consumed`, so resuming is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roots_pipeline.core.errors import MixtureError


def rank_slice(consumed: int, micro_batch: int, rank: int, total: int) -> list[int]:
    """Sample numbers of one rank in the step that begins after `consumed` samples, none beyond `total`."""
    first = consumed + rank * micro_batch
    return list(range(min(first, total), min(first + micro_batch, total)))


@dataclass(frozen=True, slots=True)
class ConsecutiveSampler:
    """Micro-batches of one rank over samples `consumed` to `total` (Megatron's data loader type "single").

    With `drop_last` a step that cannot be filled on all ranks is left out; without it the last step is cut to
    `total`, so that high ranks may get a short or empty batch. Raises MixtureError on iteration if nothing
    is left.
    """

    total: int
    consumed: int
    micro_batch: int
    rank: int
    ranks: int
    drop_last: bool = True

    def __post_init__(self) -> None:
        if self.micro_batch < 1 or not 0 <= self.rank < self.ranks:
            raise MixtureError(
                f"there is no rank {self.rank} of {self.ranks} with micro-batches of {self.micro_batch}."
            )

    def __iter__(self) -> Iterator[list[int]]:
        if self.consumed >= self.total:
            raise MixtureError(
                f"all {self.total} samples are consumed ({self.consumed}).",
                hint="Train with more samples, or stop the run here.",
            )
        step = self.micro_batch * self.ranks
        end = self.total - step + 1 if self.drop_last else self.total
        for consumed in range(self.consumed, end, step):
            yield rank_slice(consumed, self.micro_batch, self.rank, self.total)


@dataclass(frozen=True, slots=True)
class ShuffledSampler:
    """Micro-batches of one rank, shuffled anew in every epoch (Megatron's data loader type "cyclic").

    The permutation depends on the number of the epoch alone, not on a seed. With `sharded` every rank permutes its own
    contiguous bucket, all in the same way; without it one permutation of everything is dealt out to the ranks
    (megatron-core). A rest that does not fill a step of all ranks is never read. Ends with the epoch that `consumed`
    lies in. Raises MixtureError for fewer samples than one step, and for a position inside a step.
    """

    total: int
    consumed: int
    micro_batch: int
    rank: int
    ranks: int
    sharded: bool = True

    def __iter__(self) -> Iterator[list[int]]:
        step = self.micro_batch * self.ranks
        used = self.total - self.total % step
        if used == 0:
            raise MixtureError(
                f"{self.total} samples do not fill one step of {step}.",
                hint="Use a smaller micro-batch, fewer ranks or more samples.",
            )
        epoch, position = divmod(self.consumed, used)
        if position % step:
            raise MixtureError(
                f"{self.consumed} samples consumed is no whole number of steps of {step}.",
                hint="Resume with the micro-batch and the ranks of the run so far.",
            )
        numbers = self._numbers(epoch, position)
        for first in range(0, len(numbers) - self.micro_batch + 1, self.micro_batch):
            yield numbers[first : first + self.micro_batch]

    def _numbers(self, epoch: int, position: int) -> list[int]:
        """What is left of this epoch for this rank."""
        if self.sharded:
            bucket = self.total // (self.micro_batch * self.ranks) * self.micro_batch
            return [self.rank * bucket + number for number in _permutation(bucket, epoch)[position // self.ranks :]]
        everything = self.total // self.micro_batch * self.micro_batch
        return _permutation(everything, epoch)[position:][self.rank :: self.ranks]


def _permutation(size: int, seed: int) -> list[int]:
    import torch  # two seconds that nothing else here needs

    generator = torch.Generator()
    generator.manual_seed(seed)
    numbers: list[int] = torch.randperm(size, generator=generator).tolist()
    return numbers


def full_validation_slice(total: int, rank: int, ranks: int) -> list[int]:
    """Every sample once over all ranks: rank r takes r, r + ranks, ... (megatron's full validation)."""
    return list(range(rank, total, ranks))
