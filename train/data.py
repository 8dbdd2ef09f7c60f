"""From a mixture's samples to the micro-batches of one process.

Sample i of a run is always the same S + 1 tokens, whatever the batch size, the number of processes or where
the run was interrupted: a run is at position `consumed`, and that number is all that resuming needs. Of each
global batch, data-parallel process d takes micro-batches d, d + D, d + 2D, ... (as Megatron-LM's sampler
does).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class SampleSource(Protocol):
    """Samples of S + 1 token ids, int64; inputs are the first S, labels the last S."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]: ...


def micro_batches(
    source: SampleSource, consumed: int, global_batch: int, micro_batch: int, rank: int, ranks: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels, each int64 [micro_batch, S], of data-parallel process `rank` for one step."""
    for start in range(consumed + rank * micro_batch, consumed + global_batch, micro_batch * ranks):
        tokens = torch.from_numpy(np.stack([source[start + offset] for offset in range(micro_batch)]))
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def unigram_entropy(source: SampleSource, samples: int) -> float:
    """Entropy, in nats, of the label tokens of the first `samples` samples.

    No model that ignores the context can have a lower loss on these tokens, so a validation loss below it
    proves that the model uses the context.
    """
    labels = np.concatenate([source[index][1:] for index in range(samples)])
    share = np.bincount(labels)[np.unique(labels)] / len(labels)
    return float(-(share * np.log(share)).sum())
