"""Byte-level BPE training: distinct pieces with counts -> a vocabulary.

Starts from the 256 bytes and merges the most frequent pair of neighbouring tokens, again and again (Sennrich et
al. 2016), in the order and with the numbering of Hugging Face's `BpeTrainer`, so that equal counts give equal
merges. Three things differ, on purpose:
- counts are 64-bit, so frequent pairs cannot wrap around and vanish from the vocabulary;
- nothing depends on hash seeds, threads or the order of the pieces;
- a merge that would spell a special token (`</s>`) is refused. Hugging Face gives it the special token's id,
  and from then on a text that contains those characters ends a document in the training data.

In: pieces and counts as buffers. Out: `Vocabulary`. The loop is in `merge_loop`, one merge in `merge_step`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.errors import TokenizerError
from tokenizer.checkpoint import MergeCheckpoint, vocabulary_of
from tokenizer.merge_loop import MergeLoop
from tokenizer.replay import replay
from tokenizer.tokenizer_file import TokenizerFile
from tokenizer.training_text import lay_out

Int64 = npt.NDArray[np.int64]

_NO_LIMIT = 2**62
_WEIGHT_LIMIT = 2.0**62  # of all bytes together; no count of a pair can then reach 2^63


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What training learned. `tokens`: bytes by id (special tokens: their names); `merges`: (n, 2) int64, the
    pair of ids that makes token FIRST_MERGE_ID + rank; `counts`: int64, the weighted count of each merge when
    it was chosen (0: taken over from an earlier vocabulary)."""

    tokens: list[bytes]
    merges: Int64
    counts: Int64

    def __len__(self) -> int:
        return len(self.tokens)


def train_bpe(
    data: npt.NDArray[np.uint8],
    offsets: Int64,
    counts: Int64,
    vocab_size: int,
    *,
    minimum_frequency: int = 0,
    max_token_length: int | None = None,
    earlier: TokenizerFile | None = None,
    checkpoint: MergeCheckpoint | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Vocabulary:
    """Train until the vocabulary has `vocab_size` tokens or no pair occurs `minimum_frequency` times.

    `data`, `offsets`: piece i is data[offsets[i]:offsets[i + 1]], all distinct; `counts`: int64, how often each
    occurs. With `max_token_length`, tokens of three bytes or more are shorter than that many bytes (Hugging
    Face's reading of the option). `earlier`: a vocabulary of ours whose merges come first (see `replay`).
    `checkpoint` keeps the merges while training goes on; those that it holds already are not made again.
    `on_progress` hears how many tokens there are. Raises TokenizerError if the counts do not fit 64 bits.
    """
    weight = float(np.dot(counts.astype(np.float64), np.diff(offsets).astype(np.float64)))
    if weight >= _WEIGHT_LIMIT:
        raise TokenizerError(
            f"the pieces weigh {weight:.3g} bytes together, more than 64-bit counts can hold.",
            hint="Use smaller language weights.",
        )
    longest = _NO_LIMIT if max_token_length is None else max_token_length
    blocks = [np.empty((0, 3), np.int64)]
    begun = checkpoint.load() if checkpoint is not None else None
    if begun is not None:
        cells, candidates, learned = replay(data, offsets, counts, vocabulary_of(begun), longest)
        loop = MergeLoop(cells, vocab_size, minimum_frequency, longest, (learned, candidates))
        blocks = [begun]
    elif earlier is None:
        loop = MergeLoop(lay_out(data, offsets, counts), vocab_size, minimum_frequency, longest)
    else:
        cells, candidates, learned = replay(data, offsets, counts, earlier, longest)
        loop = MergeLoop(cells, vocab_size, minimum_frequency, longest, (learned, candidates))
        taken_over = earlier.merges
        blocks = [np.stack([taken_over[:, 0] << 32 | taken_over[:, 1], taken_over[:, 2], 0 * taken_over[:, 2]], axis=1)]
    for block in loop:
        blocks.append(block)
        if checkpoint is not None:
            checkpoint.save(blocks)
        if on_progress is not None:
            on_progress(len(loop.tokens))
    merges = np.concatenate(blocks)
    pairs = np.stack([merges[:, 0] >> 32, merges[:, 0] & 0xFFFFFFFF], axis=1)
    return Vocabulary(loop.tokens.pieces(), pairs, merges[:, 2])
