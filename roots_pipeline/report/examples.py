"""A few rejected documents for every source and verdict, drawn fairly in bounded memory.

Every document gets a random number from a generator with a fixed seed; the smallest of each kind stay (a reservoir).
Only then is text read, and only from the row groups that hold a chosen document.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.storage import join
from roots_pipeline.report.facts import Example
from roots_pipeline.report.histograms import is_measure
from roots_pipeline.report.reading import parquet_files, strings

PER_KIND = 3
_SEED = 20_220_707
_CHARACTERS = 1000

Kind = tuple[str, str]  # source, verdict
Place = tuple[int, int, int]  # file, row group, row within it


def draw_examples(corpus: str, kinds: Collection[Kind]) -> dict[Kind, tuple[Example, ...]]:
    """Up to three documents of RUN/corpus/rejected for each of these kinds; the same for the same files."""
    folder = join(corpus, "rejected")
    chosen = _choose(folder, kinds)
    wanted: defaultdict[tuple[int, int], list[tuple[int, Kind]]] = defaultdict(list)
    for kind, places in chosen.items():
        for number, group, row in places:
            wanted[number, group].append((row, kind))
    found: defaultdict[Kind, list[Example]] = defaultdict(list)
    for number, file in enumerate(parquet_files(folder)):
        for group in range(file.num_row_groups):
            if (number, group) in wanted:
                for kind, example in _read(file, group, sorted(wanted[number, group])):
                    found[kind].append(example)
    return {kind: tuple(examples) for kind, examples in found.items()}


def _choose(folder: str, wanted: Collection[Kind]) -> dict[Kind, list[Place]]:
    generator = np.random.default_rng(_SEED)
    best: dict[Kind, list[tuple[float, Place]]] = {}
    for kinds, first in _walk(folder):
        for offset, (kind, draw) in enumerate(zip(kinds, generator.random(len(kinds)).tolist(), strict=True)):
            if kind not in wanted:
                continue
            heap = best.setdefault(kind, [])
            entry = (-draw, (first[0], first[1], first[2] + offset))
            if len(heap) < PER_KIND:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
    return {kind: [place for _, place in heap] for kind, heap in best.items()}


def _walk(folder: str) -> Iterator[tuple[list[Kind], Place]]:
    """(source, verdict) of every row, batch by batch, with the place of the first."""
    for number, file in enumerate(parquet_files(folder)):
        for group in range(file.num_row_groups):
            row = 0
            for batch in file.iter_batches(row_groups=[group], columns=["source", "verdict"], use_threads=False):
                sources, verdicts = strings(batch.column("source")), strings(batch.column("verdict"))
                yield [(source or "", verdict or "") for source, verdict in zip(sources, verdicts, strict=True)], (
                    number, group, row)
                row += batch.num_rows


def _read(file: pq.ParquetFile, group: int, wanted: list[tuple[int, Kind]]) -> Iterator[tuple[Kind, Example]]:
    """The documents of one row group at these rows."""
    measures = [field.name for field in file.schema_arrow if is_measure(field)]
    columns = ["id", "language", "cause", "text", *{verdict for _, (_, verdict) in wanted if verdict in measures}]
    table = file.read_row_group(group, columns=columns, use_threads=False).take(pa.array([row for row, _ in wanted]))
    text = pc.binary_slice(table.column("text").cast(pa.large_binary()), 0, 4 * _CHARACTERS)
    parts = [strings(column.combine_chunks()) for column in (*table.select(columns[:3]), text)]
    for place, (_, kind) in enumerate(wanted):
        verdict = kind[1]
        value = table.column(verdict)[place].as_py() if verdict in measures else None
        id, language, cause, content = (part[place] for part in parts)
        yield kind, Example(id or "", language or "", cause, value, content)
