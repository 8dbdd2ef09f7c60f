# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Word lists of many languages as hash tables, and how many words of a text are in them.

A list holds words and, where neighbouring words are looked up together (word augmentation), groups of two or three. A
group is known by the hashes of its words, so looking it up needs no text.

Each list has a table of its own, a quarter full, of one uint64 a slot: the hash of a word or group, but for its lowest
two bits, which say of what kind it is. So a look-up is one comparison in most cases, and lists stay in the cache. Most
groups are in no list; a bit map, smaller still, says so of nearly all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.hashes import extend, mix
from roots_pipeline.text.memory import inlined, kernel
from roots_pipeline.text.roots_words import hash_strings

STOP, FLAGGED = 1, 2
LARGEST_GROUP = 3

_KINDS, _TWO = np.uint64(3), np.uint64(2)
_GROUP = np.uint64(0xBE5466CF34E90C6C)


class ListTables(NamedTuple):
    """What `count_listed` takes: the tables one after the other."""

    slots: Any  # uint64
    first: Any  # int64[lists]: the first slot of each list
    masks: Any  # uint64[lists]: its number of slots less one
    bits: Any  # uint64[lists, 1024]: the bit maps, a bit for each entry
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
    entries = [_entries(listed) for listed in lists]
    sizes = [1 << (4 * len(values) + 1).bit_length() for _, values in entries]
    first = np.cumsum([0, *sizes], dtype=np.int64)
    tables = ListTables(
        np.zeros(first[-1], np.uint64),
        first[:-1],
        np.array(sizes, np.uint64) - np.uint64(1),
        np.zeros((len(lists), 1024), np.uint64),
        np.array([[size in listed.groups for size in range(LARGEST_GROUP + 1)] for listed in lists], np.bool_),
    )
    for number, (keys, values) in enumerate(entries):
        _fill(keys, values, tables.slots, tables.first[number], tables.masks[number], tables.bits[number])
    return tables


def _entries(listed: Listed) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The key and the kind of each entry; an entry of both kinds comes twice."""
    groups: list[tuple[str, ...]] = []
    values: list[int] = []
    for value, entries in ((STOP, listed.stop), (FLAGGED, listed.flagged)):
        for entry in sorted(entries):
            for group in {(entry,), *_groups_of(entry, listed)}:
                groups.append(group)
                values.append(value)
    keys = np.zeros(len(groups), np.uint64)
    hashes = iter(hash_strings([word for group in groups for word in group]))
    for k, group in enumerate(groups):
        own = np.array([next(hashes) for _ in group], np.uint64)
        keys[k] = own[0] if len(group) == 1 else _group_key(own)
    return keys, np.array(values, np.uint64)


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
def _hash_group(words, last, size):
    value = _GROUP
    for k in range(last - size + 1, last + 1):
        value = extend(value, words[k])
    return mix(value)


@kernel
def _group_key(words):
    return _hash_group(words, len(words) - 1, len(words))


@inlined
def _find(value, slots, first, mask):
    """The slot that holds `value`, or the free one where it belongs: (its index, what it holds)."""
    place = (value >> _TWO) & mask
    held = slots[first + np.int64(place)]
    while min(held, (held ^ value) & ~_KINDS):  # neither free nor its own; one test, as either is hard to foresee
        place = (place + np.uint64(1)) & mask
        held = slots[first + np.int64(place)]
    return first + np.int64(place), held


@kernel
def _fill(keys, values, slots, first, mask, bits):
    for k in range(len(keys)):
        index, held = _find(keys[k], slots, first, mask)
        slots[index] = (keys[k] & ~_KINDS) | (held & _KINDS) | values[k]
        row, bit = _place_in_map(keys[k])
        bits[row] |= bit


@inlined
def _place_in_map(value):
    return (value >> np.uint64(40)) & np.uint64(1023), np.uint64(1) << (value >> np.uint64(50) & np.uint64(63))


@kernel
def count_listed(words, first, length, number, lists):
    """(stop words, flagged words) of list `number` among `words[first:length]` and the groups that end there."""
    slots, start, mask = lists.slots, lists.first[number], lists.masks[number]
    stop = flagged = 0
    for k in range(first, length):
        _, held = _find(words[k], slots, start, mask)
        stop += np.int64(held & np.uint64(STOP))
        flagged += np.int64(held >> np.uint64(1) & np.uint64(1))
    for size in range(2, LARGEST_GROUP + 1):
        if not lists.groups[number, size]:
            continue
        for k in range(max(first, size - 1), length):
            value = _hash_group(words, k, size)
            row, bit = _place_in_map(value)
            if lists.bits[number, row] & bit:
                _, held = _find(value, slots, start, mask)
                stop += np.int64(held & np.uint64(STOP))
                flagged += np.int64(held >> np.uint64(1) & np.uint64(1))
    return stop, flagged
