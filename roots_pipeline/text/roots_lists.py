# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Word lists of many languages as one hash table, and how many words of a text are in them.

A list holds words and, where neighbouring words are looked up together (word augmentation), groups of two or three. A
group is known by the hashes of its words, so looking it up needs no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import extend, pair_key
from roots_pipeline.text.memory import inlined, kernel
from roots_pipeline.text.roots_words import hash_strings
from roots_pipeline.text.tables import find, is_taken, new_table, put, value_at

STOP, FLAGGED = 1, 2
LARGEST_GROUP = 3

_ONE, _SIX, _SIXTY_THREE, _ROWS = (np.uint64(number) for number in (1, 6, 63, 511))
_GROUP = np.uint64(0xBE5466CF34E90C6C)


class ListTables(NamedTuple):
    """What `count_listed` takes. `bits[l]` is a bit map that most words and groups outside list l miss."""

    table: Any  # uint64, see `tables`: the key of a word or group in a list -> STOP | FLAGGED
    bits: Any  # uint64[lists, 512]
    groups: Any  # bool[lists, LARGEST_GROUP + 1]: whether groups of so many words are looked up


@dataclass(frozen=True, slots=True)
class Listed:
    """The words of one language, how many neighbours form a group, and what stands between them."""

    stop: frozenset[str]
    flagged: frozenset[str]
    groups: tuple[int, ...] = ()
    joint: str = ""


def list_tables(lists: Sequence[Listed]) -> ListTables:
    """The tables of some lists; list l is `lists[l]`."""
    keys, numbers, values = _entries(lists)
    slots = 64
    while slots < 4 * len(keys):
        slots *= 2
    tables = ListTables(
        new_table(slots),
        np.zeros((len(lists), int(_ROWS) + 1), np.uint64),
        np.array([[size in listed.groups for size in range(LARGEST_GROUP + 1)] for listed in lists], np.bool_),
    )
    _fill(keys, numbers, values, tables.table, tables.bits)
    return tables


def _entries(
    lists: Sequence[Listed],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The key, the list and the kind of each entry; an entry of both kinds comes twice."""
    words: list[tuple[str, ...]] = []
    numbers: list[int] = []
    values: list[int] = []
    for number, listed in enumerate(lists):
        for value, entries in ((STOP, listed.stop), (FLAGGED, listed.flagged)):
            for entry in sorted(entries):
                for group in {(entry,), *_groups_of(entry, listed)}:
                    words.append(group)
                    numbers.append(number)
                    values.append(value)
    keys = np.zeros(len(words), np.uint64)
    hashes = iter(hash_strings([word for group in words for word in group]))
    for k, group in enumerate(words):
        own = np.array([next(hashes) for _ in group], np.uint64)
        keys[k] = own[0] if len(group) == 1 else _group_key(own, len(own) - 1, len(own))
    return keys, np.array(numbers, np.int64), np.array(values, np.int64)


def _groups_of(entry: str, listed: Listed) -> Iterator[tuple[str, ...]]:
    """All groups of words that an entry is when joined."""
    for size in listed.groups:
        if listed.joint:
            parts = tuple(entry.split(listed.joint))
            if len(parts) == size and all(parts):
                yield parts
        else:
            yield from _cuts(entry, size)


def _cuts(entry: str, pieces: int) -> Iterator[tuple[str, ...]]:
    """All ways to cut a string into so many pieces."""
    if pieces == 1:
        yield (entry,)
        return
    for end in range(1, len(entry) - pieces + 2):
        for rest in _cuts(entry[end:], pieces - 1):
            yield (entry[:end], *rest)


@inlined
def _group_key_of(words, last, size):
    value = _GROUP
    for k in range(last - size + 1, last + 1):
        value = extend(value, words[k])
    return value


@kernel
def _group_key(words, last, size):
    return _group_key_of(words, last, size)


@inlined
def _look_up(value, number, table, bits):
    """The kinds of list `number` that a word or group is in."""
    if not (bits[number, (value >> _SIX) & _ROWS] >> (value & _SIXTY_THREE)) & _ONE:
        return 0
    slot = find(table, np.uint64(table.size // 2 - 1), pair_key(value, np.uint64(number)), _ONE)
    return value_at(table, slot) if is_taken(table, slot, _ONE) else 0


@kernel
def count_listed(words, first, length, number, lists):
    """(stop words, flagged words) of list `number` among `words[first:length]` and the groups that end there."""
    table, bits, groups = lists.table, lists.bits, lists.groups
    stop = flagged = 0
    for k in range(first, length):
        kinds = _look_up(words[k], number, table, bits)
        stop += kinds & STOP
        flagged += kinds >> 1
    for size in range(2, LARGEST_GROUP + 1):
        if groups[number, size]:
            for k in range(max(first, size - 1), length):
                kinds = _look_up(_group_key_of(words, k, size), number, table, bits)
                stop += kinds & STOP
                flagged += kinds >> 1
    return stop, flagged


@kernel
def _fill(keys, numbers, values, table, bits):
    mask = np.uint64(table.size // 2 - 1)
    for k in range(len(keys)):
        value, number = keys[k], numbers[k]
        key = pair_key(value, np.uint64(number))
        slot = find(table, mask, key, _ONE)
        kinds = value_at(table, slot) if is_taken(table, slot, _ONE) else 0
        put(table, slot, key, _ONE, kinds | values[k])
        bits[number, (value >> _SIX) & _ROWS] |= _ONE << (value & _SIXTY_THREE)
