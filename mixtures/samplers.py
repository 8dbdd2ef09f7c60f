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


def full_validation_slice(total: int, rank: int, ranks: int) -> list[int]:
    """Every sample once over all ranks: rank r takes r, r + ranks, ... (megatron's full validation)."""
    return list(range(rank, total, ranks))
