"""The working columns in which the rounds of passage cutting keep what they found, and how equal spans are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.dedup.passage_windows import candidates

Numbers = npt.NDArray[np.int64]

# Records whose anchor occurs more than once, or that may repeat their own windows (periodic).
RECORDS = pa.schema([
    pa.field("start", pa.int64()), pa.field("windows", pa.int32()), pa.field("periodic", pa.bool_()),
    pa.field("anchor", pa.uint64()),
])
# Spans to cut, in bytes of the text, and a document with another copy.
SPANS = pa.schema([pa.field("start", pa.int64()), pa.field("stop", pa.int64()), pa.field("cause", pa.string())])
# Records to be compared window by window: where they start, how many windows they have, their anchor, and whether each
# window goes its own way because too many records have that anchor.
OPEN = pa.schema([
    pa.field("start", pa.int64()), pa.field("windows", pa.int32()), pa.field("anchor", pa.uint64()),
    pa.field("split", pa.bool_()),
])


@dataclass(frozen=True, slots=True)
class PassageColumns:
    """Names of the working columns; they follow from the length of a window, which they share."""

    length: int

    @property
    def records(self) -> str:
        return f"_passage_records_{self.length}"

    @property
    def spans(self) -> str:
        return f"_passage_spans_{self.length}"

    @property
    def open(self) -> str:
        return f"_passage_open_{self.length}"


class Copies(NamedTuple):
    """What `equal_spans` finds among entries."""

    best: Numbers  # the best entry of each set of equal ones, and all that have no equal
    repeated: Numbers  # entries that are copies of another
    twin: Numbers  # the entry that each of those is a copy of


def equal_spans(entries: pa.Table, document: Numbers, all_copies: bool) -> Copies:
    """Entries with equal hashes `high` and `low` are copies; the best is that of the best document and smallest start.

    With `all_copies` the best one counts as a copy of the next.
    """
    high, low, start = (entries.column(name).to_numpy() for name in ("high", "low", "start"))
    order = np.argsort(high)
    again = _equals_previous(high[order])
    shared = again.copy()
    shared[:-1] |= again[1:]
    lone, order = order[~shared], order[shared]  # most entries share their hash with no other
    order = order[np.lexsort((start[order], document[order], low[order], high[order]))]
    leads = ~(_equals_previous(high[order]) & _equals_previous(low[order]))
    first = np.maximum.accumulate(np.where(leads, np.arange(len(order)), 0))
    copies = np.flatnonzero(~leads)
    repeated, twin = order[copies], order[first[copies]]
    if all_copies:
        seconds = copies[leads[copies - 1]]
        repeated, twin = np.append(repeated, order[seconds - 1]), np.append(twin, order[seconds])
    return Copies(np.append(lone, order[leads]), repeated, twin)


def repeated_keys(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which keys occur more than once."""
    mask = candidates(keys)
    at = np.flatnonzero(mask)
    order = at[np.argsort(keys[at])]
    again = _equals_previous(keys[order])
    again[:-1] |= again[1:]
    mask[order] = again
    return mask


def _equals_previous(ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    same = np.zeros(len(ordered), bool)
    same[1:] = ordered[1:] == ordered[:-1]
    return same
