"""One group of a mixture, served sample by sample in its published order (`packed` is the other way).

In: the group's `.bin/.idx`, one side of the split, how many samples are wanted. Out: sample k as S + 1
token ids, and the spans of documents from which it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mixtures.cache import Arrays, cached
from mixtures.indexed import IndexedReader, IntArray
from mixtures.lock import Lock
from mixtures.order import build_order
from mixtures.splits import sequences_of
from roots_pipeline.core.errors import MixtureError, StorageError
from roots_pipeline.core.storage import join


@dataclass(frozen=True, slots=True)
class Span:
    """`tokens` tokens of sequence `sequence` of the group's file, from its token `start` on."""

    sequence: int
    start: int
    tokens: int


class GroupSamples:
    """Samples of one group: its files and the three arrays of its order (see `order`).

    `len()` tells how many there are: all that whole epochs hold, at least as many as were wanted.
    """

    def __init__(
        self,
        reader: IndexedReader,
        sequence_length: int,
        document_index: IntArray,
        sample_index: IntArray,
        shuffle_index: IntArray,
    ) -> None:
        self.reader, self.sequence_length = reader, sequence_length
        self._documents, self._starts, self._shuffle = document_index, sample_index, shuffle_index

    def __len__(self) -> int:
        return len(self._shuffle)

    def sample(self, number: int) -> npt.NDArray[np.int64]:
        """Token ids [S + 1] of sample `number`."""
        out = np.empty(self.sequence_length + 1, np.int64)
        (first, start), (last, end) = self._bounds(number)
        reader = self.reader
        tokens, offsets, lengths = reader.tokens, reader.offsets, reader.lengths
        item = reader.dtype.itemsize
        filled = _gather(tokens, offsets, lengths, item, self._documents, first, start, last, end + 1, out)
        if filled != len(out):
            raise StorageError(
                f"sample {number} does not hold {len(out)} tokens, so its cached order is damaged.",
                where=reader.prefix,
                hint="Delete the cache folder of the mixture; it is rebuilt.",
            )
        return out

    def spans(self, number: int) -> list[Span]:
        """Where the tokens of sample `number` lie, in reading order; empty documents between are left out."""
        (first, start), (last, end) = self._bounds(number)
        found = []
        for position in range(first, last + 1):
            sequence = int(self._documents[position])
            begin = start if position == first else 0
            stop = end + 1 if position == last else int(self.reader.lengths[sequence])
            if stop > begin:
                found.append(Span(sequence, begin, stop - begin))
        return found

    def boundaries(self, number: int) -> npt.NDArray[np.int64]:
        """Where documents begin inside sample `number`, 0 first and S + 1 last (the `cu_seqlens` of attention kernels).

        A mask made of it keeps attention inside of documents. It follows from the order and is stored nowhere.
        """
        lengths = [span.tokens for span in self.spans(number)]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])

    def containing(self, sequences: Sequence[int]) -> npt.NDArray[np.int64]:
        """Numbers, rising, of all samples that hold a token of one of these sequences of the group's file."""
        there = np.isin(self._documents, np.asarray(sequences, np.int64))
        positions = np.flatnonzero(there & (self.reader.lengths[self._documents] > 0))
        # Sample k reads from its start to the start of k + 1, which it shares with that sample.
        first = np.searchsorted(self._starts[1:, 0], positions, "left")
        last = np.searchsorted(self._starts[:-1, 0], positions, "right")
        changes = np.zeros(len(self) + 1, np.int64)
        np.add.at(changes, np.minimum(first, len(self)), 1)
        np.add.at(changes, np.maximum(last, np.minimum(first, len(self))), -1)
        return np.flatnonzero(np.cumsum(changes[:-1])[self._shuffle] > 0)

    def _bounds(self, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        place = int(self._shuffle[number])
        return (
            (int(self._starts[place, 0]), int(self._starts[place, 1])),
            (int(self._starts[place + 1, 0]), int(self._starts[place + 1, 1])),
        )


def order_inputs(lock: Lock, name: str, side: str, sequence_length: int, seed: int) -> dict[str, Any]:
    """What the index arrays of a group follow from, but for the samples wanted: their name in the cache."""
    files = lock.groups[name].files
    # Content hashes, not names or sizes: an order of other data is never found in the cache.
    return {
        "lengths": files[".idx"].xxh3,
        "documents": files[".documents.parquet"].xxh3,
        "split": lock.split,
        "side": side,
        "sequence_length": sequence_length,
        "seed": seed,
        "variant": lock.variant,
    }


def sequences_to_draw(lock: Lock, name: str, side: str, reader: IndexedReader) -> IntArray:
    """The sequences of one side of a group. Raises MixtureError if they hold no token."""
    sequences = sequences_of(lock.split, side, reader.prefix, len(reader), lock.variant)
    if not np.any(reader.lengths[sequences]):
        raise MixtureError(
            f"group {name} has no token for {side}.",
            where=reader.prefix,
            hint="Give it the weight 0, or change the share that is held out.",
        )
    return sequences


def open_group(
    lock: Lock, name: str, folder: str, side: str, wanted: int, sequence_length: int, seed: int, cache: str
) -> GroupSamples:
    """The samples of group `name` on one side of the split, at least `wanted` of them; the order comes from `cache`.

    Raises MixtureError if that side holds no token, StorageError if the files are broken.
    """
    reader = IndexedReader(join(folder, lock.groups[name].file))
    inputs = {**order_inputs(lock, name, side, sequence_length, seed), "wanted": wanted}

    def build() -> tuple[Arrays, Any]:
        sequences = sequences_to_draw(lock, name, side, reader)
        order = build_order(reader.lengths, sequences, sequence_length, wanted, seed, lock.variant)
        arrays = {"document": order.document_index, "sample": order.sample_index, "shuffle": order.shuffle_index}
        return arrays, {"epochs": order.epochs, "separate_last_epoch": order.separate_last_epoch}

    arrays, _ = cached(cache, "order", inputs, build)
    return GroupSamples(reader, sequence_length, arrays["document"], arrays["sample"], arrays["shuffle"])


@njit(cache=True)
def _gather(
    tokens: IntArray,
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    item_bytes: int,
    documents: IntArray,
    first: int,
    start: int,
    last: int,
    end: int,
    out: npt.NDArray[np.int64],
) -> int:
    """Copy token `start` of document `first` up to, but not including, `end` of document `last`.

    Returns how many tokens were copied, or -1 instead of writing past `out`.
    """
    filled = 0
    for position in range(first, last + 1):
        sequence = documents[position]
        begin = start if position == first else 0
        stop = end if position == last else lengths[sequence]
        if filled + stop - begin > len(out):
            return -1
        base = offsets[sequence] // item_bytes
        for token in range(begin, stop):
            out[filled] = tokens[base + token]
            filled += 1
    return filled
