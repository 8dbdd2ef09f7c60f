# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Stop-word lists as a hash table, and how many words of a list a text has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.characters import character_classes
from roots_pipeline.text.hashes import pair_key
from roots_pipeline.text.memory import kernel
from roots_pipeline.text.tables import find, is_taken, new_table, put, value_at
from roots_pipeline.text.words import hash_words

_ONE, _SIX, _FIFTEEN, _SIXTY_THREE = np.uint64(1), np.uint64(6), np.uint64(15), np.uint64(63)


@dataclass(frozen=True, slots=True)
class StopWords:
    """Stop-word lists for the kernels.

    `table` maps a spelling's hash and list to the number of its word; `sizes[l]` is the number of words in list l;
    `bits[l]` is a bit map of 1024 bits that most words of other kinds miss.
    """

    table: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.int64]
    bits: npt.NDArray[np.uint64]

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """What `count_stop_words` takes: the above, and the last text in which each word was seen."""
        return self.table, self.sizes, self.bits, np.full(self.sizes.sum(), -1, np.int64)


def stop_words(lists: Sequence[Sequence[Sequence[str]]]) -> StopWords:
    """`lists[l][w]` holds the spellings of word w in list l; a text that has any of them has the word."""
    spellings: list[str] = []
    list_of: list[int] = []
    word_of: list[int] = []
    word = 0
    for number, entries in enumerate(lists):
        for forms in entries:
            spellings.extend(forms)
            list_of.extend([number] * len(forms))
            word_of.extend([word] * len(forms))
            word += 1
    hashes, _, first = hash_words(*_buffers(spellings), character_classes())
    if not np.array_equal(first, np.arange(len(spellings) + 1)):
        raise ValueError(f"a stop word must be one word without white space: {spellings}")
    slots = 64
    while slots < 4 * len(spellings):
        slots *= 2
    stops = StopWords(
        new_table(slots),
        np.array([len(entries) for entries in lists], np.int64),
        np.zeros((len(lists), 16), np.uint64),
    )
    _fill_stop_words(hashes, np.array(list_of, np.int64), np.array(word_of, np.int64), stops.table, stops.bits)
    return stops


def _buffers(texts: Iterable[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


@kernel
def count_stop_words(words, length, stop_list, stops, text):
    """How many stop words of a list (-1: none) are among the words of a text."""
    table, sizes, bits, seen = stops
    found = 0
    if stop_list < 0:
        return found
    mask = np.uint64(table.size // 2 - 1)
    for k in range(length):
        value = words[k]
        if (bits[stop_list, (value >> _SIX) & _FIFTEEN] >> (value & _SIXTY_THREE)) & _ONE:
            slot = find(table, mask, pair_key(value, np.uint64(stop_list)), _ONE)
            if is_taken(table, slot, _ONE) and seen[value_at(table, slot)] != text:
                seen[value_at(table, slot)] = text
                found += 1
                if found == sizes[stop_list]:
                    break
    return found


@kernel
def _fill_stop_words(hashes, lists, words, table, bits):
    mask = np.uint64(table.size // 2 - 1)
    for k in range(len(hashes)):
        key = pair_key(hashes[k], np.uint64(lists[k]))
        put(table, find(table, mask, key, _ONE), key, _ONE, words[k])
        bits[lists[k], (hashes[k] >> _SIX) & _FIFTEEN] |= _ONE << (hashes[k] & _SIXTY_THREE)
