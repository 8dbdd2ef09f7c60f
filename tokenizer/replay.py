# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Go on from an earlier vocabulary: bring the training text to where its merges leave it, and find the pairs there.

Training merges a pair everywhere before it looks for the next; encoding a piece makes its lowest merge first, again and
again. Both leave the same tokens, so the pieces are encoded once with the merges there are. On the counts that the
earlier vocabulary came from, training goes on exactly as if it had never stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.text.memory import kernel
from tokenizer.alphabet import FIRST_MERGE_ID
from tokenizer.encode import Encoder
from tokenizer.pair_queue import COUNT, pair_slot, push
from tokenizer.tokenizer_file import TokenizerFile
from tokenizer.training_text import INSIDE, OUTSIDE, Candidates, Cells, pieces_with_pairs, room_for

Int64 = npt.NDArray[np.int64]


class Replayed(NamedTuple):
    """The training text under earlier merges, the pairs in it, and the bytes of the tokens they made."""

    cells: Cells
    candidates: Candidates
    learned: list[bytes]


def replay(
    data: npt.NDArray[np.uint8], offsets: Int64, counts: Int64, earlier: TokenizerFile, longest: int
) -> Replayed:
    """Lay out pieces (see `bpe.train_bpe`) as the merges of `earlier`, numbered as ours, leave them."""
    chosen = pieces_with_pairs(offsets, counts)
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    ids, numbers = Encoder(earlier).encode_pieces(column.take(pa.array(chosen)))
    learned = earlier.tokens[FIRST_MERGE_ID : FIRST_MERGE_ID + len(earlier.merges)]
    lengths = np.array([1] * FIRST_MERGE_ID + [len(token) for token in learned], np.int64)
    room = int((np.diff(offsets)[chosen] + 1).sum()) + 1
    cells = Cells(np.empty(room, np.int32), np.empty(room, np.int32), counts[chosen])
    begins = np.empty(len(ids), np.int64)
    _lay_out_tokens(ids, numbers, lengths, cells.ids, cells.pieces, begins)
    return Replayed(cells, _candidates(ids, begins, lengths, longest, cells), learned)


def _candidates(ids: npt.NDArray[np.int32], begins: Int64, lengths: Int64, longest: int, cells: Cells) -> Candidates:
    left, right = ids[:-1].astype(np.int64), ids[1:].astype(np.int64)
    joined = lengths[left] + lengths[right]
    # As while merging: pairs of bytes are exempt from the limit, neighbours in other pieces are no pair.
    usable = (begins[1:] == begins[:-1] + lengths[left]) & ((joined == 2) | (joined < longest))
    places = np.flatnonzero(usable)
    pairs = left[places] << 32 | right[places]
    order = np.argsort(pairs, kind="stable")
    pairs, positions = pairs[order], begins[places[order]]
    firsts = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]])) if len(pairs) else np.empty(0, np.int64)
    weights = cells.counts[cells.pieces[positions]]
    totals = np.add.reduceat(weights, firsts) if len(pairs) else weights
    candidates = room_for(len(firsts), len(positions), cells.ids.size)
    candidates[2].positions[: len(positions)] = positions
    bounds = np.append(firsts, len(positions))
    _start_candidates(pairs[firsts], totals, bounds, *candidates)
    return candidates


@kernel
def _lay_out_tokens(ids, numbers, lengths, cells, pieces, begins):
    cell = np.int64(0)
    token = np.int64(0)
    cells[0] = OUTSIDE
    pieces[0] = 0
    for piece in range(numbers.size):
        for _ in range(numbers[piece]):
            length = lengths[ids[token]]
            begins[token] = cell + 1
            for place in range(cell + 1, cell + 1 + length):
                cells[place] = INSIDE
                pieces[place] = piece
            cells[cell + 1] = ids[token]
            cells[cell + length] = ids[token]
            cell += length
            token += 1
        cell += 1
        cells[cell] = OUTSIDE
        pieces[cell] = piece


@kernel
def _start_candidates(keys, totals, bounds, pairs, queue, occurrences):
    for entry in range(keys.size):
        slot = pair_slot(pairs.rows, pairs.used, keys[entry])
        pairs.rows[slot, COUNT] = totals[entry]
        push(queue.rows, queue.used, totals[entry], keys[entry], entry)
        occurrences.spans[entry, 0] = bounds[entry]
        occurrences.spans[entry, 1] = bounds[entry + 1] - bounds[entry]
    occurrences.used[0] = keys.size
    occurrences.used[1] = bounds[keys.size]
