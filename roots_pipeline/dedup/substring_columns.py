"""The working columns in which the rounds of passage cutting keep what they found, and how equal spans are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
    """What `equal_spans` finds: entries in order (equal ones together, best first), and of each in that order …"""

    order: Numbers
    leads: npt.NDArray[np.bool_]  # … whether it is the best of its class
    repeated: Numbers  # entries that are copies of another
    twin: Numbers  # the entry that each of those is a copy of


def equal_spans(entries: pa.Table, document: Numbers, all_copies: bool) -> Copies:
    """Entries with equal hashes `high` and `low` are copies; the best is that of the best document and smallest start.

    With `all_copies` the best one counts as a copy of the next.
    """
    high, low, start = (entries.column(name).to_numpy() for name in ("high", "low", "start"))
    order = np.lexsort((start, document, low, high))
    leads = np.ones(len(order), bool)
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in (high, low):
        same &= column[order][1:] == column[order][:-1]
    leads[1:] = ~same
    best = np.maximum.accumulate(np.where(leads, np.arange(len(order)), 0))
    copies = np.flatnonzero(~leads)
    repeated, twin = order[copies], order[best[copies]]
    if all_copies:
        seconds = copies[leads[copies - 1]]
        repeated, twin = np.append(repeated, order[seconds - 1]), np.append(twin, order[seconds])
    return Copies(order, leads, repeated, twin)
