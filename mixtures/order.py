"""The order of samples inside one group: documents shuffled per epoch, cut into samples, samples shuffled.

Why: this is the order that BLOOM saw, and that every Megatron-style run reproduces from a seed. In:
sequence lengths in tokens, the sequences of a split, sequence length S, samples wanted, seed. Out: three
arrays,

    document_index [E x documents]   sequences in the order in which they are read, over all E epochs
    sample_index   [samples + 1, 2]  (position in document_index, token offset) at which each sample begins
    shuffle_index  [samples]         which sample of sample_index is served as number i

A sample is S + 1 tokens and begins on the last token of the one before. E is the smallest number of epochs
that holds the samples wanted. A last epoch of which only little is used is shuffled apart, so that its
documents do not spread over the earlier epochs (bigscience-workshop/Megatron-DeepSpeed,
megatron/data/gpt_dataset.py and helpers.cpp; NVIDIA megatron-core 0.16, core/datasets). The two published
variants differ in what "little" means. Where the former stops with an assertion (the last epoch needs one
sample more than one epoch alone holds), both variants here do what the latter does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit

from mixtures.indexed import IntArray
from roots_pipeline.core.errors import MixtureError

Variant = Literal["bigscience", "megatron_core"]

# The last epoch is shuffled apart if it gives fewer than this share of the samples of one epoch.
LAST_EPOCH_THRESHOLD: dict[Variant, float] = {"bigscience": 0.95, "megatron_core": 0.80}
INT32_END = 2**31


@dataclass(frozen=True, slots=True)
class Order:
    """The three index arrays of one group (see the module), and how many epochs they span."""

    document_index: IntArray
    sample_index: IntArray
    shuffle_index: IntArray
    epochs: int
    separate_last_epoch: bool

    @property
    def samples(self) -> int:
        """How many samples there are: all that E epochs hold, at least as many as were wanted."""
        return len(self.shuffle_index)


def epochs_needed(tokens: int, sequence_length: int, samples: int, extra_token: bool = True) -> int:
    """Smallest E with (E x tokens - 1) // S >= samples, at least 1. `tokens` are those of one epoch."""
    if tokens <= 0:
        raise MixtureError(
            "there is not one token to draw from.",
            hint="Give this group the weight 0, or add documents to it.",
        )
    return max(1, -(-(samples * sequence_length + extra_token) // tokens))


def samples_in(epochs: int, tokens: int, sequence_length: int, extra_token: bool = True) -> int:
    """Whole samples in a number of epochs read as one stream."""
    return max(0, (epochs * tokens - extra_token) // sequence_length)


def build_order(
    lengths: IntArray,
    documents: IntArray,
    sequence_length: int,
    samples: int | None,
    seed: int,
    variant: Variant,
    *,
    extra_token: bool = True,
    keep_partial: bool = False,
) -> Order:
    """The order of one group.

    `lengths` [N] tokens of every sequence of the file; `documents` the sequences of this split; `samples`
    how many are wanted (None: one epoch). `extra_token` and `keep_partial` are megatron-core's options:
    samples of S instead of S + 1 tokens, and a shorter sample at the very end. Raises MixtureError if the
    split has no tokens.
    """
    if sequence_length < 1:
        raise MixtureError(f"a sample cannot have {sequence_length} tokens.", hint="Set sequence_length to 1 or more.")
    tokens = int(np.sum(lengths[documents], dtype=np.int64))
    epochs = epochs_needed(tokens, sequence_length, samples or 0, extra_token)
    before_last = samples_in(epochs - 1, tokens, sequence_length, extra_token) if epochs > 1 else 0
    per_epoch = samples_in(1, tokens, sequence_length, extra_token)
    separate = (
        samples is not None and epochs > 1 and samples - before_last < int(LAST_EPOCH_THRESHOLD[variant] * per_epoch)
    )
    total = samples_in(epochs, tokens, sequence_length, extra_token)
    if keep_partial:
        total = max(0, -(-(epochs * tokens - extra_token) // sequence_length))
    random = np.random.RandomState(seed)
    document_index = _shuffled_documents(documents, epochs, separate, random)
    sample_index = locate_samples(
        lengths, document_index, sequence_length, total, epochs * tokens, extra_token=extra_token
    )
    shuffle_index = _shuffled_samples(before_last if separate else total, total, random)
    return Order(document_index, sample_index, shuffle_index, epochs, separate)


def _shuffled_documents(documents: IntArray, epochs: int, separate: bool, random: np.random.RandomState) -> IntArray:
    largest = int(documents.max()) if len(documents) else 0
    documents = documents.astype(np.dtype(np.int32 if largest < INT32_END else np.int64))
    index = np.tile(documents, epochs)
    last = len(index) - len(documents) if separate else len(index)
    random.shuffle(index[:last])
    if separate:
        random.shuffle(index[last:])
    return index


def _shuffled_samples(first: int, total: int, random: np.random.RandomState) -> IntArray:
    """A permutation of [0, first) followed by one of [first, total)."""
    index: IntArray = np.arange(total, dtype=np.dtype(np.uint32 if total < 2**32 - 2 else np.int64))
    random.shuffle(index[:first])
    if first < total:
        random.shuffle(index[first:])
    return index


def locate_samples(
    lengths: IntArray,
    document_index: IntArray,
    sequence_length: int,
    samples: int,
    tokens: int,
    *,
    extra_token: bool = True,
) -> IntArray:
    """`sample_index` [samples + 1, 2] of documents in this order; `tokens` are those of the whole order.

    int32 as published, int64 once a position no longer fits.
    """
    small = len(document_index) < INT32_END
    index: IntArray = np.zeros((samples + 1, 2), np.dtype(np.int32 if small else np.int64))
    _locate(lengths, document_index, sequence_length, tokens, int(extra_token), index)
    return index


@njit(cache=True)
def _locate(
    lengths: IntArray,
    document_index: IntArray,
    sequence_length: int,
    tokens: int,
    extra: int,
    index: IntArray,
) -> None:
    # Boundary i is found through the last token that samples 0 to i-1 have read: it never lies in an empty
    # document, and without an extra token the boundary is one past it. The first boundary is (0, 0)
    # whatever document 0 holds.
    # A partial sample ends with the last document, or, where core fails because that one is empty, with the
    # last token.
    position, last = 0, len(document_index) - 1
    start = np.int64(0)
    end = np.int64(lengths[document_index[0]]) if len(index) > 1 else np.int64(0)
    for i in range(1, len(index)):
        token = np.int64(i) * sequence_length + extra - 1
        partial = token >= tokens
        if partial:
            token = np.int64(tokens - 1)
        while end <= token:
            position += 1
            start = end
            end += lengths[document_index[position]]
        index[i, 0] = position
        index[i, 1] = token - start + 1 - extra
        if partial and lengths[document_index[last]] >= extra:
            index[i, 0] = last
            index[i, 1] = lengths[document_index[last]] - extra
