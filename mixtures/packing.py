"""Best-fit packing: documents laid into samples whole, so that few are cut and little is padding.

Why: in a stream that is cut every S + 1 tokens most documents lose their beginning or their end to another sample. Here
only documents longer than a sample are cut, and the pieces are packed by best-fit decreasing (Ding et al. 2024, "Fewer
Truncations Improve Language Modeling", arXiv 2404.10830, section 3): the longest piece first, each into the sample with
the least room that holds it. In: lengths and the sequences of a split. Out: a `PackedIndex`, in which every token of
these sequences is exactly once; what is left of a sample is padding.

Pieces come in whole lengths, so a segment tree over the possible rooms 0 to S + 1 finds the sample in O(log S), and
sorting is counting: O(N log S) in all. Among pieces of one length the order of a shuffle by seed decides, among samples
with equal room the one that has had it for longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from numba import njit

from mixtures.indexed import IntArray
from mixtures.order import INT32_END
from roots_pipeline.core.errors import MixtureError

Packing = Literal["stream", "best_fit"]


@dataclass(frozen=True, slots=True)
class PackedIndex:
    """One epoch of packed samples.

    documents     [pieces]       sequence of each piece, sample by sample, the longest first
    starts        [pieces]       token of the sequence at which the piece begins
    samples       [samples + 1]  first piece of each sample, and the number of pieces, int64
    labels        [samples]      how many of a sample's S labels count (see `labels_that_count`)
    """

    documents: IntArray
    starts: npt.NDArray[np.int32]
    samples: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]


def pack(lengths: IntArray, documents: IntArray, sequence_length: int, seed: int) -> PackedIndex:
    """Pack sequences into samples of at most `sequence_length` + 1 tokens.

    `lengths` [N] tokens of every sequence of the file; `documents` the sequences of this split. Empty ones are in no
    sample. Raises MixtureError for samples that predict nothing.
    """
    if sequence_length < 1:
        raise MixtureError(f"a sample cannot have {sequence_length} tokens.", hint="Set sequence_length to 1 or more.")
    room = sequence_length + 1
    largest = int(documents.max()) if len(documents) else 0
    numbers = np.dtype(np.int32 if largest < INT32_END else np.int64)
    shuffled = documents.astype(numbers)
    np.random.RandomState(seed).shuffle(shuffled)
    histogram = np.zeros(room + 1, np.int64)
    _count(lengths, shuffled, room, histogram)
    pieces = int(histogram.sum())
    kind = np.dtype(np.int32 if pieces < INT32_END else np.int64)
    owners: IntArray = np.empty(pieces, kind)
    samples = _fit(histogram, room, owners, np.empty(pieces, kind))
    places = np.zeros(samples + 1, np.int64)
    places[1:] = np.cumsum(np.bincount(owners, minlength=samples))
    _place(owners, places[:-1].copy())
    in_order: IntArray = np.empty(pieces, numbers)
    starts, labels = np.empty(pieces, np.int32), np.empty(samples, np.int32)
    _lay(lengths, shuffled, room, histogram, owners, in_order, starts)
    _count_labels(lengths, room, in_order, starts, places, labels)
    return PackedIndex(in_order, starts, places, labels)


@njit(cache=True)
def _count(lengths: IntArray, documents: IntArray, room: int, histogram: npt.NDArray[np.int64]) -> None:
    """How many pieces of each length there are."""
    for document in documents:
        whole, rest = divmod(np.int64(lengths[document]), room)
        histogram[room] += whole
        if rest > 0:
            histogram[rest] += 1


@njit(cache=True)
def _fit(histogram: npt.NDArray[np.int64], room: int, owners: IntArray, behind: IntArray) -> int:
    """The sample of each piece, the longest piece first; returns the number of samples.

    Samples with equal room wait in a queue: `first` and `last` of each room, and `behind` for each sample.
    """
    leaves = 1
    while leaves <= room:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.bool_)  # whether a sample has a room below this node
    first, last = np.zeros(room + 1, np.int64), np.zeros(room + 1, np.int64)
    samples, piece = 0, 0
    for length in range(room, 0, -1):
        for _ in range(histogram[length]):
            found = _least_room(tree, leaves, length)
            if found < 0:
                sample, left = samples, room - length
                samples += 1
            else:
                sample, left = first[found], found - length
                if sample == last[found]:
                    _close(tree, leaves + found)
                else:
                    first[found] = behind[sample]
            owners[piece] = sample
            piece += 1
            if left > 0:
                if tree[leaves + left]:
                    behind[last[left]] = sample
                else:
                    first[left] = sample
                    _open(tree, leaves + left)
                last[left] = sample
    return samples


@njit(cache=True)
def _least_room(tree: npt.NDArray[np.bool_], leaves: int, length: int) -> int:
    """The smallest room of at least `length` that a sample has, or -1."""
    node = leaves + length
    if tree[node]:
        return length
    while node > 1:
        if node % 2 == 0 and tree[node + 1]:
            node += 1
            while node < leaves:
                node *= 2
                if not tree[node]:
                    node += 1
            return node - leaves
        node //= 2
    return -1


@njit(cache=True)
def _open(tree: npt.NDArray[np.bool_], node: int) -> None:
    while node > 0 and not tree[node]:
        tree[node] = True
        node //= 2


@njit(cache=True)
def _close(tree: npt.NDArray[np.bool_], node: int) -> None:
    tree[node] = False
    while node > 1 and not tree[node ^ 1]:
        node //= 2
        tree[node] = False


@njit(cache=True)
def _place(owners: IntArray, free: npt.NDArray[np.int64]) -> None:
    """Turn the sample of each piece into its place among all pieces; `free` is the next place of each sample."""
    for piece in range(len(owners)):
        sample = owners[piece]
        owners[piece] = free[sample]
        free[sample] += 1


@njit(cache=True)
def _lay(
    lengths: IntArray,
    documents: IntArray,
    room: int,
    histogram: npt.NDArray[np.int64],
    places: IntArray,
    out_documents: IntArray,
    out_starts: npt.NDArray[np.int32],
) -> None:
    """Write which piece of which document lies at each place; `places` has the longest pieces first."""
    following = np.zeros(room + 1, np.int64)  # number of the next piece of each length
    for length in range(room - 1, 0, -1):
        following[length] = following[length + 1] + histogram[length + 1]
    for document in documents:
        tokens = int(lengths[document])
        for start in range(0, tokens, room):
            length = min(room, tokens - start)
            place = places[following[length]]
            following[length] += 1
            out_documents[place] = document
            out_starts[place] = start


@njit(cache=True)
def _count_labels(
    lengths: IntArray,
    room: int,
    documents: IntArray,
    starts: npt.NDArray[np.int32],
    samples: npt.NDArray[np.int64],
    out: npt.NDArray[np.int32],
) -> None:
    for sample in range(len(out)):
        labels = -1
        for piece in range(samples[sample], samples[sample + 1]):
            labels += min(room, lengths[documents[piece]] - starts[piece])
            if starts[piece] > 0 and piece > samples[sample]:
                labels -= 1
        out[sample] = labels


def labels_that_count(
    starts: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64], sequence_length: int
) -> npt.NDArray[np.bool_]:
    """Which of the S labels of a sample count, from where its pieces begin in their documents and their tokens.

    Label i is token i + 1. Padding does not count, nor does the first token of a piece that continues a document: what
    lies before it in the sample says nothing of it. The first token of a document does, as everywhere.
    """
    ends = np.cumsum(tokens)
    mask: npt.NDArray[np.bool_] = np.arange(1, sequence_length + 1) < ends[-1]
    mask[ends[:-1][starts[1:] > 0] - 1] = False
    return mask
