"""From a mixture's samples to the micro-batches of one process.

Sample i of a run is always the same S + 1 tokens, whatever the batch size, the number of processes or where
the run was interrupted: a run is at position `consumed`, and that number is all that resuming needs. Of each
global batch, data-parallel process d takes micro-batches d, d + D, d + 2D, ... (as Megatron-LM's sampler
does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from roots_pipeline.core.errors import TrainingError

StartsOf = Callable[[npt.NDArray[np.int64]], Tensor]

class SampleSource(Protocol):
    """Samples of S + 1 token ids, int64; inputs are the first S, labels the last S."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]: ...


@runtime_checkable
class DocumentedSource(Protocol):
    """A source that also tells where documents begin in a sample: 0 first, S + 1 last."""

    def boundaries(self, index: int) -> npt.NDArray[np.int64]: ...


def document_starts(source: SampleSource, length: int) -> StartsOf:
    """For numbers of samples, int32 [samples, length]: at each input, the position at which its document begins.

    Raises TrainingError if the source does not know its documents.
    """
    if not isinstance(source, DocumentedSource):
        raise TrainingError(
            "these samples do not tell where documents begin.", hint="Leave out train.attention_within_documents."
        )
    boundaries = source.boundaries

    def starts_of(numbers: npt.NDArray[np.int64]) -> Tensor:
        rows = [boundaries(int(number)) for number in numbers]
        starts = [np.repeat(row[:-1], np.diff(row))[:length] for row in rows]
        return torch.from_numpy(np.stack(starts).astype(np.int32))

    return starts_of


def micro_batches(
    source: SampleSource, numbers: Sequence[int] | npt.NDArray[np.int64], micro_batch: int, rank: int, ranks: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels, each int64 [micro_batch, S], of data-parallel process `rank` for one step over the samples
    `numbers`."""
    for start in range(rank * micro_batch, len(numbers), micro_batch * ranks):
        tokens = torch.from_numpy(np.stack([source[int(one)] for one in numbers[start : start + micro_batch]]))
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
