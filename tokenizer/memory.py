"""How much memory training will take, said before it starts.

Per distinct piece: its entry in the table of weighted pieces and the slots that find it. Per byte of distinct pieces:
the bytes, the cells of the training text (two int32) and the positions of the pairs (int32, with room for those that
merging adds). Per token: its spelling and its place in the tables. The factors allow for tables that double.
"""

from __future__ import annotations

import psutil

from tokenizer.weights import WeightedPieces

_PER_PIECE = 130
_PER_BYTE = 26
_PER_TOKEN = 250
_BASE = 60_000_000


def training_memory(pieces: WeightedPieces, vocab_size: int) -> int:
    """Bytes that weighing and merging take at their peak, above the interpreter and its libraries; an estimate."""
    return _BASE + _PER_PIECE * len(pieces.counts) + _PER_BYTE * int(pieces.offsets[-1]) + _PER_TOKEN * vocab_size


def memory_sentence(pieces: WeightedPieces, vocab_size: int) -> str:
    """What will be needed and what there is, for people."""
    needed, free = training_memory(pieces, vocab_size), int(psutil.virtual_memory().available)
    sentence = (
        f"Merging {len(pieces.counts):,} distinct pieces into {vocab_size:,} tokens takes about {needed / 1e6:,.0f} MB."
    )
    if needed > free:
        sentence += (
            f" Only {free / 1e6:,.0f} MB are free: if this fails, raise minimum_count, or sample less text (sampling)."
        )
    return sentence
