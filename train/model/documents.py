"""Attention that stays inside of documents: where the documents of a micro-batch begin, and which pairs that hides.

A sample is a piece of a stream in which documents follow each other. BLOOM's attention crossed their ends. With
`train.attention_within_documents` a query sees only the keys of its own document. Distances are as before; ALiBi's
biases, which grow with a key's position, count it from the beginning of the document, so that bfloat16 does not round
those of a late document more coarsely. The last token of a document still predicts the first one of the next, as in
BLOOM's training: it sees all of its own document, and learns how documents begin.

Where documents begin follows from the number of a sample and the mixture's index, so every process looks it up itself:
nothing is sent between pipeline stages or tensor-parallel processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Documents:
    """What this process knows of the micro-batch that it is computing.

    `starts` [micro-batch, length], int32: at each position, the position at which its document begins. None: attention
    crosses the ends of documents.
    """

    def __init__(self) -> None:
        self.starts: Tensor | None = None

    @contextmanager
    def of(self, starts: Tensor | None) -> Iterator[None]:
        """Inside, documents begin at `starts`."""
        before, self.starts = self.starts, starts
        try:
            yield
        finally:
            self.starts = before


def own_positions(starts: Tensor) -> Tensor:
    """The position of each token in its document, int64 [batch, length]."""
    return torch.arange(starts.shape[1], device=starts.device) - starts


def unseen_pairs(length: int, device: torch.device, starts: Tensor | None) -> Tensor:
    """Which keys a query must not see, bool [length, length] (query, key): later ones.

    With `starts` also those of earlier documents, [batch, 1, length, length].
    """
    future = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
    if starts is None:
        return future
    return future | (torch.arange(length, device=device) < starts[:, None, :, None])
