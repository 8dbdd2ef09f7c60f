# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""The loop of BPE training: take the best pair, merge it, again, until the vocabulary is full.

The kernel never allocates. When an array might run full it stops before the step, `MergeLoop` enlarges what is
short, and the loop goes on; so memory grows with need, and Python gets a word in (progress, Ctrl-C) every
thousand merges.

No token is made twice. If a string becomes a token somewhere, no merge has crossed its borders there, so what
happened inside depended on the string alone: wherever it stands in such borders, it is at that moment the same pair
and merges too. Hence each pair enters the queue once, with all its positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import kernel
from tokenizer.alphabet import BYTES_BY_ID, SPECIAL_TOKENS
from tokenizer.bytestring import copy_bytes
from tokenizer.merge_step import GROUP_COLUMNS, Scratch, queue_new_pairs, replace_pair, update_counts
from tokenizer.pair_queue import COUNT, drop_first, move_pairs, new_pairs, pair_slot, replace_first
from tokenizer.piece_table import ENTRIES, START, PieceTable, entry_of
from tokenizer.training_text import Candidates, Cells, first_pairs

Int64 = npt.NDArray[np.int64]

MERGES_A_CALL = 1000
_SPECIALS = len(SPECIAL_TOKENS)
_PAUSE, _FINISHED, _TOKENS_FULL, _SPELLING_FULL, _LISTS_FULL = range(5)


@kernel
def _groups_at_most(number, tokens):
    """How many groups a merge can make: two at each of its places, and no more than tokens on either side."""
    return min(2 * number, 2 * tokens)


@kernel
def _has_room(pairs, queue, occurrences, scratch, number, groups):
    """Whether a merge at `number` places with that many groups surely fits."""
    return (
        occurrences.used[1] + 2 * number <= occurrences.positions.size
        and occurrences.used[0] + groups <= occurrences.spans.shape[0]
        and queue.used[0] + groups <= queue.rows.shape[0]
        and 2 * (pairs.used[0] + 2 * groups) <= pairs.rows.shape[0]
        and groups <= scratch.groups.shape[0]
        and 2 * number <= scratch.touched.shape[0]
    )


@kernel
def _merge_on(cells, tokens, lengths, pairs, queue, occurrences, scratch, spelling, limits, merges, made):
    """Merge until the vocabulary or an array is full; returns (status, amount that is short).

    `lengths`: int32, bytes of each token. `limits`: vocabulary size, minimum frequency, length limit. `merges`:
    (n, 3) int64, pair, new id and count of each merge; `made[0]` of them are filled.
    """
    slots, entries, arena, token_used = tokens
    while made[0] < merges.shape[0]:
        if token_used[ENTRIES] >= limits[0] or queue.used[0] == 0:
            return _FINISHED, np.int64(0)
        count, pair, entry = queue.rows[0]
        now = pairs.rows[pair_slot(pairs.rows, pairs.used, pair), COUNT]
        if now != count:
            if now > 0:
                replace_first(queue.rows, queue.used[0], now, pair, entry)
            else:
                drop_first(queue.rows, queue.used)
            continue
        if count < limits[1]:
            return _FINISHED, np.int64(0)
        first, number = occurrences.spans[entry]
        groups = _groups_at_most(number, token_used[ENTRIES] + 1)
        if not _has_room(pairs, queue, occurrences, scratch, number, groups):
            return _LISTS_FULL, number
        a, b = pair >> 32, pair & np.int64(0xFFFFFFFF)
        length = np.int64(lengths[a]) + lengths[b]
        if length > spelling.size:
            return _SPELLING_FULL, length
        copy_bytes(spelling, 0, arena, entries[a, START], lengths[a])
        copy_bytes(spelling, lengths[a], arena, entries[b, START], lengths[b])
        c = entry_of(slots, entries, arena, token_used, spelling, 0, length, 0)
        if c < 0:
            return _TOKENS_FULL, length
        drop_first(queue.rows, queue.used)
        if c < _SPECIALS:
            continue
        lengths[c] = length
        positions = occurrences.positions[first : first + number]
        groups, touched = replace_pair(cells, lengths, positions, a, b, c, scratch)
        update_counts(pairs, lengths, a, b, c, limits[2], scratch.groups[:groups])
        queue_new_pairs(pairs, queue, occurrences, lengths, c, limits[2], scratch, groups, touched)
        merges[made[0], 0] = pair
        merges[made[0], 1] = c
        merges[made[0], 2] = count
        made[0] += 1
    return _PAUSE, np.int64(0)


class MergeLoop:
    """BPE training under way. Iterating runs it: each item is an (n, 3) int64 block, pair, new id, count."""

    def __init__(
        self,
        cells: Cells,
        vocab_size: int,
        minimum_frequency: int,
        longest: int,
        start: tuple[Sequence[bytes], Candidates] | None = None,
    ) -> None:
        """`start`: tokens of an earlier vocabulary, which the cells already hold, and the pairs that stand there."""
        self._cells = cells
        learned, candidates = start or ((), None)
        self._pairs, self._queue, self._occurrences = candidates or first_pairs(cells)
        self._limits = np.array([vocab_size, minimum_frequency, longest], np.int64)
        self.tokens = _first_tokens(learned)
        size = max(vocab_size, len(self.tokens)) + 1
        self._lengths = np.zeros(size, np.int32)
        self._lengths[: len(self.tokens)] = self.tokens.entries()[2]
        slots = np.full((2, size), -1, np.int32)
        self._scratch = Scratch(
            slots[0], slots[1], np.empty((0, GROUP_COLUMNS), np.int64), np.empty((0, 2), np.int64)
        )
        self._spelling = np.empty(256, np.uint8)

    def __iter__(self) -> Iterator[Int64]:
        merges, made = np.empty((MERGES_A_CALL, 3), np.int64), np.zeros(1, np.int64)
        status = _PAUSE
        while status != _FINISHED:
            status, short = _merge_on(
                self._cells, self.tokens.table, self._lengths, self._pairs, self._queue, self._occurrences,
                self._scratch, self._spelling, self._limits, merges, made,
            )  # fmt: skip
            if status in (_PAUSE, _FINISHED):
                yield merges[: made[0]].copy()
                made[0] = 0
            elif status == _TOKENS_FULL:
                self.tokens.grow(short)
            elif status == _SPELLING_FULL:
                self._spelling = np.empty(2 * short, np.uint8)
            else:
                self._make_room(short)

    def _make_room(self, number: int) -> None:
        """Room for a merge of a pair that occurs `number` times."""
        groups = int(_groups_at_most(number, len(self.tokens) + 1))
        lists, positions = self._occurrences.used.tolist()
        self._occurrences = self._occurrences._replace(
            positions=_enlarged(self._occurrences.positions, positions + 2 * number),
            spans=_enlarged(self._occurrences.spans, lists + groups),
        )
        self._queue = self._queue._replace(rows=_enlarged(self._queue.rows, int(self._queue.used[0]) + groups))
        self._scratch = self._scratch._replace(
            groups=_enlarged(self._scratch.groups, groups), touched=_enlarged(self._scratch.touched, 2 * number)
        )
        size = len(self._pairs.rows)
        while 2 * (int(self._pairs.used[0]) + 2 * groups) > size:
            size *= 2
        if size > len(self._pairs.rows):
            larger = new_pairs(size)
            move_pairs(self._pairs.rows, larger.rows, larger.used)
            self._pairs = larger


def _first_tokens(learned: Sequence[bytes]) -> PieceTable:
    """The special tokens, the bytes and what was learned before, so that an entry's number is its token id."""
    tokens = PieceTable()
    spelled = [name.encode() for name in SPECIAL_TOKENS] + [bytes([byte]) for byte in BYTES_BY_ID] + [*learned]
    offsets = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
    zeros = np.zeros(len(spelled), np.int64)
    tokens.add_pieces(np.frombuffer(b"".join(spelled), np.uint8), offsets, zeros.astype(np.int32), zeros)
    return tokens


def _enlarged(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """The array itself if it has that many rows, else a copy with at least half as many again."""
    if len(array) >= rows:
        return array
    grown = np.empty((max(rows, len(array) + len(array) // 2), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
