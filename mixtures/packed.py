"""One group of a mixture in packed samples (see `packing`), shuffled in every epoch.

In: the group's `.bin/.idx`, one side of the split, how many samples are wanted. Out: sample k as S + 1 token ids, real
ones first and padding behind them, which of its S labels count, and the spans of documents from which it is read.

Which pieces share a sample is the same in every epoch, so that an epoch is arithmetic; the samples of each are shuffled
by the seed of the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mixtures.cache import Arrays, cached
from mixtures.group import Span, order_inputs, sequences_to_draw
from mixtures.indexed import IndexedReader, IntArray
from mixtures.lock import Lock, check_group
from mixtures.packing import PackedIndex, labels_that_count, pack
from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import join


@dataclass(frozen=True, slots=True)
class Fill:
    """What one epoch of packed samples holds; `cut` counts the documents longer than a sample."""

    samples: int
    tokens: int
    documents: int
    cut: int
    sequence_length: int

    @property
    def share(self) -> float:
        """Real tokens among all S + 1 places of all samples."""
        return self.tokens / (self.samples * (self.sequence_length + 1))


class PackedSamples:
    """Samples of one group: its files, one epoch of packed samples, and their order over all epochs.

    `padding` is the token id behind the real ones. `len()` tells how many samples there are: those of whole epochs.
    """

    def __init__(
        self, reader: IndexedReader, sequence_length: int, padding: int, index: PackedIndex, shuffle: IntArray
    ) -> None:
        self.reader, self.sequence_length, self.padding = reader, sequence_length, padding
        self._index, self._shuffle = index, shuffle

    def __len__(self) -> int:
        return len(self._shuffle)

    def sample(self, number: int) -> npt.NDArray[np.int64]:
        """Token ids [S + 1] of sample `number`."""
        first, end = self._bounds(number)
        out = np.full(self.sequence_length + 1, self.padding, np.int64)
        reader, index = self.reader, self._index
        filled = _gather_pieces(
            reader.tokens, reader.offsets, reader.lengths, reader.dtype.itemsize, index.documents, index.starts,
            first, end, out,
        )  # fmt: skip
        if filled < 1:
            raise StorageError(
                f"sample {number} is not made of pieces of documents, so its cached order is damaged.",
                where=reader.prefix,
                hint="Delete the cache folder of the mixture; it is rebuilt.",
            )
        return out

    def spans(self, number: int) -> list[Span]:
        """Where the tokens of sample `number` lie, in reading order; padding lies nowhere."""
        documents, starts, tokens = self._pieces(number)
        rows = zip(documents.tolist(), starts.tolist(), tokens.tolist(), strict=True)
        return [Span(document, start, count) for document, start, count in rows]

    def boundaries(self, number: int) -> npt.NDArray[np.int64]:
        """Where pieces begin inside sample `number`, 0 first and S + 1 last; padding is the last piece.

        See `GroupSamples.boundaries`.
        """
        _, _, tokens = self._pieces(number)
        ends = np.cumsum(tokens)
        last = [] if ends[-1] == self.sequence_length + 1 else [self.sequence_length + 1]
        return np.concatenate([[0], ends, last]).astype(np.int64)

    def counted(self, number: int) -> npt.NDArray[np.bool_]:
        """Which of the S labels of sample `number` count: neither padding nor the first token of a continued piece."""
        _, starts, tokens = self._pieces(number)
        return labels_that_count(starts, tokens, self.sequence_length)

    def labels(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many labels of these samples count."""
        return self._index.labels[self._shuffle[numbers]].astype(np.int64)

    def containing(self, sequences: Sequence[int]) -> npt.NDArray[np.int64]:
        """Numbers, rising, of all samples that hold a token of one of these sequences of the group's file."""
        pieces = np.flatnonzero(np.isin(self._index.documents, np.asarray(sequences, np.int64)))
        there = np.zeros(len(self._index.labels), bool)
        there[np.searchsorted(self._index.samples, pieces, "right") - 1] = True
        return np.flatnonzero(there[self._shuffle])

    def _bounds(self, number: int) -> tuple[int, int]:
        place = int(self._shuffle[number])
        return int(self._index.samples[place]), int(self._index.samples[place + 1])

    def _pieces(self, number: int) -> tuple[IntArray, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Documents, first tokens and counts of tokens of the pieces of a sample."""
        first, end = self._bounds(number)
        documents, starts = self._index.documents[first:end], self._index.starts[first:end].astype(np.int64)
        return documents, starts, np.minimum(self.reader.lengths[documents] - starts, self.sequence_length + 1)


def open_packed(
    lock: Lock, name: str, folder: str, side: str, wanted: int, sequence_length: int, seed: int, cache: str
) -> PackedSamples:
    """The packed samples of group `name` on one side of the split, at least `wanted`; the order comes from `cache`.

    Raises MixtureError if that side holds no token, StorageError if the files are broken.
    """
    reader, index, _ = _open_index(lock, name, folder, side, sequence_length, seed, cache)
    inputs = {**_inputs(lock, name, side, sequence_length, seed), "wanted": wanted}

    def build() -> tuple[Arrays, Any]:
        epochs = max(1, -(-wanted // len(index.labels)))
        return {"shuffle": shuffled_epochs(len(index.labels), epochs, seed)}, {"epochs": epochs}

    arrays, _ = cached(cache, "packed_order", inputs, build)
    return PackedSamples(reader, sequence_length, lock.end_of_text, index, arrays["shuffle"])


def training_fills(lock: Lock, folder: str, sequence_length: int, cache: str | None = None) -> dict[str, Fill]:
    """What one epoch of the packed training samples of each group with a weight holds.

    Raises StaleDataError if the files are not those of the lock; as `open_packed`.
    """
    found = {}
    for name, group in lock.groups.items():
        if group.weight > 0:
            check_group(group, folder)
            place = cache or join(folder, "cache")
            found[name] = _open_index(lock, name, folder, "train", sequence_length, lock.seed, place)[2]
    return found


def _open_index(
    lock: Lock, name: str, folder: str, side: str, sequence_length: int, seed: int, cache: str
) -> tuple[IndexedReader, PackedIndex, Fill]:
    reader = IndexedReader(join(folder, lock.groups[name].file))

    def build() -> tuple[Arrays, Any]:
        sequences = sequences_to_draw(lock, name, side, reader)
        index, lengths = pack(reader.lengths, sequences, sequence_length, seed), reader.lengths[sequences]
        facts = {
            "tokens": int(np.sum(lengths, dtype=np.int64)),
            "documents": int(np.count_nonzero(lengths)),
            "cut": int(np.count_nonzero(lengths > sequence_length + 1)),
        }
        arrays: Arrays = {
            "document": index.documents, "start": index.starts, "sample": index.samples, "label": index.labels
        }  # fmt: skip
        return arrays, facts

    arrays, facts = cached(cache, "packing", _inputs(lock, name, side, sequence_length, seed), build)
    index = PackedIndex(arrays["document"], arrays["start"], arrays["sample"], arrays["label"])
    fill = Fill(len(index.labels), facts["tokens"], facts["documents"], facts["cut"], sequence_length)
    return reader, index, fill


def _inputs(lock: Lock, name: str, side: str, sequence_length: int, seed: int) -> dict[str, Any]:
    return {**order_inputs(lock, name, side, sequence_length, seed), "packing": lock.packing}


def shuffled_epochs(samples: int, epochs: int, seed: int) -> IntArray:
    """A permutation of [0, samples) for each epoch, one after the other."""
    random = np.random.RandomState(seed)
    index: IntArray = np.tile(np.arange(samples, dtype=np.dtype(np.uint32 if samples < 2**32 else np.int64)), epochs)
    for first in range(0, len(index), samples):
        random.shuffle(index[first : first + samples])
    return index


@njit(cache=True)
def _gather_pieces(
    tokens: IntArray,
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int32],
    item_bytes: int,
    documents: IntArray,
    starts: npt.NDArray[np.int32],
    first: int,
    end: int,
    out: npt.NDArray[np.int64],
) -> int:
    """Copy pieces `first` to `end`; returns how many tokens were copied, or -1 instead of reading or writing beyond."""
    filled = 0
    for piece in range(first, end):
        document, start = documents[piece], starts[piece]
        if not (0 <= document < len(lengths) and 0 <= start < lengths[document]):
            return -1
        count = min(lengths[document] - start, len(out))
        if filled + count > len(out):
            return -1
        base = offsets[document] // item_bytes + start
        for token in range(count):
            out[filled + token] = tokens[base + token]
        filled += count
    return filled
