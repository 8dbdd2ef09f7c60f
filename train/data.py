"""From a mixture's samples to the micro-batches of one process.

Sample i of a run is always the same S + 1 tokens, whatever the batch size, the number of processes or where
the run was interrupted: a run is at position `consumed`, and that number is all that resuming needs. Of each
global batch, data-parallel process d takes micro-batches d, d + D, d + 2D, ... (as Megatron-LM's sampler
does).

Of a packed sample (`mixtures.packing`) not every label counts: those of padding, and the first one of a piece whose
document began in another sample, are NOT_COUNTED. How many count follows from the index, so every process knows the
number of a whole step without asking the others.
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
Numbers = Sequence[int] | npt.NDArray[np.int64]
NOT_COUNTED = -100  # PyTorch's own losses pass over this label, too

class SampleSource(Protocol):
    """Samples of S + 1 token ids, int64; inputs are the first S, labels the last S."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]: ...


@runtime_checkable
class DocumentedSource(Protocol):
    """A source that also tells where documents begin in a sample: 0 first, S + 1 last."""

    def boundaries(self, index: int) -> npt.NDArray[np.int64]: ...


@runtime_checkable
class PackableSource(Protocol):
    """A source that may be packed: then it tells which labels of a sample count [S], and how many of some samples."""

    @property
    def packed(self) -> bool: ...

    def counted(self, index: int) -> npt.NDArray[np.bool_]: ...

    def labels(self, numbers: Numbers) -> int: ...


def packed_source(source: SampleSource) -> PackableSource | None:
    """The source if it is packed; None if every label counts."""
    return source if isinstance(source, PackableSource) and source.packed else None


def labels_of_micro_batch(source: SampleSource, numbers: Numbers, micro_batch: int) -> float | None:
    """How many labels of a micro-batch count in the mean over all of a step over `numbers`; None if all do.

    A loss that is summed over a micro-batch and divided by this has as its mean over micro-batches, in whatever process
    they are, the mean over all labels that count. A step without any counts one, so that its loss is 0.
    """
    packed = packed_source(source)
    return None if packed is None else max(1, packed.labels(numbers)) * micro_batch / len(numbers)


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
    source: SampleSource, numbers: Numbers, micro_batch: int, rank: int, ranks: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels, each int64 [micro_batch, S], of data-parallel process `rank` for one step over the samples
    `numbers`."""
    packed = packed_source(source)
    for start in range(rank * micro_batch, len(numbers), micro_batch * ranks):
        own = [int(one) for one in numbers[start : start + micro_batch]]
        tokens = torch.from_numpy(np.stack([source[one] for one in own]))
        labels = tokens[:, 1:].contiguous()
        if packed is not None:  # not in place: of a single sample, inputs and labels share their memory
            counted = torch.from_numpy(np.stack([packed.counted(one) for one in own]))
            labels = labels.masked_fill(~counted, NOT_COUNTED)
        yield tokens[:, :-1].contiguous(), labels
