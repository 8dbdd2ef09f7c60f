"""Documents that hold n-grams of the same item meet: what they send, and what they hear back.

A document whose evidence may still suffice sends an entry of its own. All others of a batch only tell how common
n-grams are, so they share one entry an item, and a phrase of the whole web does not make the entries grow with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS
from roots_pipeline.decontamination.evidence import weigh
from roots_pipeline.decontamination.index import EvaluationIndex, Ints, different
from roots_pipeline.decontamination.judging import Counts, Judged, Limits, judge_item

_NO_ROW = -1
_NO_GRAMS = np.empty(0, np.int64)
# Spreads consecutive items over the key space (2^64 / golden ratio).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

ENTRY = pa.schema([
    *KEY_FIELDS,  # the row is -1 where an entry stands for documents that need no verdict
    pa.field("item", pa.int64()),
    pa.field("documents", pa.int64()),
    pa.field("grams", pa.list_(pa.int64())),  # n-grams of the item that these documents hold
    pa.field("counts", pa.list_(pa.int64())),  # how many of the documents hold each; of one document: empty
])
FINDING = pa.schema([
    *FINDING_FIELDS,
    pa.field("item", pa.int64()),
    pa.field("overlap", pa.float64()),
    pa.field("words", pa.float64()),
    pa.field("contaminated", pa.bool_()),
    pa.field("found", pa.list_(pa.int64())),  # if asked for, what contaminates the document, as in the working column
])


class _Entry(NamedTuple):
    row: int
    item: int
    documents: int
    grams: Ints
    counts: Ints


def entries_of(index: EvaluationIndex, limits: Limits, found: dict[int, Ints], shard: int) -> pa.Table:
    """What documents send: `found` maps the row of each to its hits (see `ContaminationScan`)."""
    entries: list[_Entry] = []
    strays: dict[int, list[Ints]] = defaultdict(list)
    whole: dict[int, list[int]] = defaultdict(list)
    for row, hits in found.items():
        for item in index.shorts[-1 - hits[hits < 0]].tolist():
            whole[item].append(row)
        evidence = weigh(index, hits[hits >= 0])
        for item, overlap, run, places in zip(*evidence, strict=True):
            of_item = different(index.grams[places])
            if limits.reachable(overlap, run):
                entries.append(_Entry(row, item, 1, of_item, _NO_GRAMS))
            else:
                strays[item].append(of_item)
    for item, parts in strays.items():
        entries.append(_Entry(_NO_ROW, item, len(parts), *np.unique(np.concatenate(parts), return_counts=True)))
    for item, rows in whole.items():
        if limits.too_many(len(rows)):
            entries.append(_Entry(_NO_ROW, item, len(rows), _NO_GRAMS, _NO_GRAMS))
        else:
            entries += [_Entry(row, item, 1, _NO_GRAMS, _NO_GRAMS) for row in rows]
    items = np.array([entry.item for entry in entries], np.int64)
    columns = [(items.astype(np.uint64) + np.uint64(1)) * _SPREAD, np.full(len(entries), shard, np.int32),
               [entry.row for entry in entries], items, *([entry[k] for entry in entries] for k in (2, 3, 4))]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, ENTRY, strict=True)], schema=ENTRY)


def judge_entries(index: EvaluationIndex, limits: Limits, entries: pa.Table, *, found: bool) -> pa.Table:
    """What documents hear back, from all entries of some items, in any order; what of an item was `found` if asked for.

    Documents that hold the same n-grams of an item are judged together: an item that half of a corpus holds costs
    little more than the rows that have to hear of it.
    """
    item, row, documents = (entries.column(name).to_numpy() for name in ("item", "row", "documents"))
    grams, counts = _Lists.of(entries.column("grams")), _Lists.of(entries.column("counts"))
    results: list[tuple[str, int, Judged]] = []  # of different holdings
    told: list[Ints] = []  # places of entries
    results_told: list[Ints] = []
    for number, places in _groups(item):
        own = places[row[places] != _NO_ROW]
        if not len(own):
            continue
        holdings, which = _different_holdings(grams, own)
        if index.totals[number] > 0:
            strays = places[row[places] == _NO_ROW]
            judged = judge_item(index, number, holdings, np.bincount(which).tolist(),
                                Counts(grams.joined(strays), counts.joined(strays)), limits)
        elif limits.too_many(int(documents[places].sum())):
            judged = [Judged(0.0, 0.0, False, _NO_GRAMS)]
        else:
            judged = [Judged(1.0, index.words_in(number), True, -1 - np.searchsorted(index.shorts, [number]))]
        told.append(own)
        results_told.append(which + len(results))
        name = index.name(number)
        results += [(name, number, result if found else result._replace(found=_NO_GRAMS)) for result in judged]
    to_tell = np.concatenate([_NO_GRAMS, *told])
    heard = np.concatenate([_NO_GRAMS, *results_told])
    rows = [(name, number, *result) for name, number, result in results]
    columns = {name: entries.column(name).take(pa.array(to_tell)) for name in ("shard", "row")}
    for place, name in enumerate(("cause", "item", "overlap", "words", "contaminated", "found")):
        columns[name] = pa.array([line[place] for line in rows], FINDING.field(name).type).take(pa.array(heard))
    return pa.table({name: columns[name] for name in FINDING.names}, schema=FINDING)


def _different_holdings(grams: _Lists, own: Ints) -> tuple[list[Ints], Ints]:
    """The different lists at these places, and which of them is at each place."""
    numbers: dict[bytes, int] = {}
    which = np.array([numbers.setdefault(grams[place].tobytes(), len(numbers)) for place in own.tolist()], np.int64)
    return [np.frombuffer(key, np.int64) for key in numbers], which


@dataclass(frozen=True, slots=True)
class _Lists:
    """A column of lists without nulls."""

    values: Ints
    bounds: Ints

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Lists:
        lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return cls(lists.values.to_numpy(), lists.offsets.to_numpy())

    def __getitem__(self, place: int) -> Ints:
        return self.values[self.bounds[place] : self.bounds[place + 1]]

    def joined(self, places: Ints) -> Ints:
        """The lists at these places as one."""
        return np.concatenate([_NO_GRAMS, *(self[place] for place in places.tolist())])


def _groups(item: Ints) -> Iterator[tuple[int, Ints]]:
    """Each item and the places of its entries."""
    order = np.argsort(item, kind="stable")
    items, first = np.unique(item[order], return_index=True)
    for number, (begin, end) in zip(items.tolist(), pairwise([*first.tolist(), len(order)]), strict=True):
        yield number, order[begin:end]

