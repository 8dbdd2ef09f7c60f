"""The merges of a training that is under way, written down now and then: after a kill, training goes on from them.

In: blocks of merges as `merge_loop` makes them. Out: one JSON file with the mark of what is trained (settings, counts)
and the merges, removed once the tokenizer is written. Going on is `replay`: the result is that of training in one go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.storage import exists, read_json, remove_file, write_json
from tokenizer.alphabet import BYTES_BY_ID, SPECIAL_TOKENS, byte_ids
from tokenizer.tokenizer_file import TokenizerFile

Int64 = npt.NDArray[np.int64]

SECONDS = 60.0  # between two checkpoints; writing one takes less than a second


class MergeCheckpoint:
    """Merges (n, 3) int64 (left id << 32 | right id, new id, count) in the file `path`, of the training `mark`."""

    def __init__(self, path: str, mark: str) -> None:
        self._path = path
        self._mark = mark
        self._written = time.monotonic()

    def load(self) -> Int64 | None:
        """The merges of this very training that are written down, if any."""
        if not exists(self._path):
            return None
        content = read_json(self._path)
        if content["mark"] != self._mark:
            return None
        return np.array(content["merges"], np.int64).reshape(-1, 3)

    def save(self, blocks: Sequence[Int64]) -> None:
        """Write down all merges so far, if the last time was a while ago."""
        if time.monotonic() - self._written >= SECONDS:
            write_json(self._path, {"mark": self._mark, "merges": np.concatenate(blocks).tolist()})
            self._written = time.monotonic()

    def forget(self) -> None:
        """Remove the file: the tokenizer is written."""
        if exists(self._path):
            remove_file(self._path)


def vocabulary_of(merges: Int64) -> TokenizerFile:
    """The vocabulary that merges of ours make, for `replay`."""
    tokens = [*(name.encode() for name in SPECIAL_TOKENS), *(bytes([byte]) for byte in BYTES_BY_ID)]
    left, right = merges[:, 0] >> 32, merges[:, 0] & 0xFFFFFFFF
    for first, second in zip(left.tolist(), right.tolist(), strict=True):
        tokens.append(tokens[first] + tokens[second])
    special_ids = {name: number for number, name in enumerate(SPECIAL_TOKENS)}
    return TokenizerFile(tokens, special_ids, byte_ids(), np.stack([left, right, merges[:, 1]], axis=1))
