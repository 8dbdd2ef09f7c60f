# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Records with the same anchor: which are copies of another, and which others have to be compared by their bytes.

Two records that differ can share a window only if they agree in enough bytes before or behind their anchor. A hash of
those bytes on each side rules most pairs out before any bytes travel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import kernel

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_SMALL = 24  # records in a group that are compared one with another; larger groups are sorted


class Entries(NamedTuple):
    """Records; a document is its number by rank. `before` and `behind` are hashes beside the anchor, 0 for none."""

    anchor: Hashes
    high: Hashes
    low: Hashes
    document: Numbers
    start: Numbers
    before: npt.NDArray[np.uint32]
    behind: npt.NDArray[np.uint32]
    periodic: npt.NDArray[np.bool_]


class Grouped(NamedTuple):
    """For each record: another one that it is a copy of (-1: none), and how many it has to be compared with."""

    twin: Numbers
    different: Numbers  # records with its anchor that differ from each other, itself included; 0: no need to compare


def group_records(entries: Entries, all_copies: bool) -> Grouped:
    """The best copy of each record is that of the best document and smallest start; with `all_copies` even that one is
    a copy, of the next. Only best copies have to be compared."""
    order = np.argsort(entries.anchor)
    anchor = entries.anchor[order]
    bounds = np.append(np.flatnonzero(np.append(True, anchor[1:] != anchor[:-1])[: len(anchor)]), len(anchor))
    twin, different = np.full(len(anchor), -1, np.int64), np.zeros(len(anchor), np.int64)
    _compare_small(order, bounds, *entries, all_copies, _SMALL, twin, different)
    sizes = np.diff(bounds)
    large = order[np.repeat(sizes > _SMALL, sizes)]
    if len(large):
        _sort_large(entries, large, all_copies, twin, different)
    return Grouped(twin, different)


@kernel
def _compare_small(
    order, bounds, anchor, high, low, document, start, before, behind, periodic, all_copies, small, twin, different
):
    for group in range(bounds.size - 1):
        begin, end = bounds[group], bounds[group + 1]
        if end - begin > small:
            continue
        kinds, repeating = 0, False
        for i in range(begin, end):
            mine = order[i]
            best, next_best = mine, np.int64(-1)
            for k in range(begin, end):
                other = order[k]
                if k != i and high[other] == high[mine] and low[other] == low[mine]:
                    if _precedes(document, start, other, best):
                        best = other
                    if next_best < 0 or _precedes(document, start, other, next_best):
                        next_best = other
            if best != mine:
                twin[mine] = best
                continue
            kinds += 1
            repeating |= periodic[mine]
            different[mine] = 1
            if all_copies:
                twin[mine] = next_best
        for i in range(begin, end):
            if different[order[i]]:
                meets = repeating
                for k in range(begin, end):
                    meets |= k != i and different[order[k]] != 0 and _agree(before, behind, order[i], order[k])
                different[order[i]] = kinds if meets else -1
        for i in range(begin, end):
            different[order[i]] = max(different[order[i]], 0)


@kernel
def _precedes(document, start, a, b):
    return document[a] < document[b] or (document[a] == document[b] and start[a] < start[b])


@kernel
def _agree(before, behind, a, b):
    return (before[a] == before[b] and before[a] > 0) or (behind[a] == behind[b] and behind[a] > 0)


def _sort_large(entries: Entries, large: Numbers, all_copies: bool, twin: Numbers, different: Numbers) -> None:
    anchor = entries.anchor[large]
    copies = find_copies(entries.high[large], entries.low[large], entries.document[large], entries.start[large],
                         all_copies)
    twin[large[copies.repeated]] = large[copies.twin]
    _, kind, counts = np.unique(anchor[copies.best], return_inverse=True, return_counts=True)
    best, kinds = large[copies.best], counts[kind]
    different[best] = np.where((kinds > 1) | entries.periodic[best], kinds, 0)


class Copies(NamedTuple):
    """What `find_copies` finds among spans."""

    best: Numbers  # the best of each set of equal spans, and all that have no equal
    repeated: Numbers  # spans that are copies of another
    twin: Numbers  # the span that each of those is a copy of


def find_copies(high: Hashes, low: Hashes, document: Numbers, start: Numbers, all_copies: bool) -> Copies:
    """Spans with equal hashes are copies; the best is that of the best document and smallest start.

    With `all_copies` the best one counts as a copy of the next.
    """
    order = np.lexsort((start, document, low, high))
    leads = np.ones(len(order), bool)
    leads[1:] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    first = np.maximum.accumulate(np.where(leads, np.arange(len(order)), 0))
    copies = np.flatnonzero(~leads)
    repeated, twin = order[copies], order[first[copies]]
    if all_copies:
        seconds = copies[leads[copies - 1]]
        repeated, twin = np.append(repeated, order[seconds - 1]), np.append(twin, order[seconds])
    return Copies(order[leads], repeated, twin)
