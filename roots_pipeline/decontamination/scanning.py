"""The pass over the text: which n-grams and short items of the index each document holds.

In: text. Out: a working column that names what was found, and the measures as far as one document alone decides them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.stages import Map
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.evidence import best_jaccard, weigh
from roots_pipeline.decontamination.index import Bools, EvaluationIndex, Ints, Matching, different
from roots_pipeline.decontamination.indexing import load_index
from roots_pipeline.text.contamination import Hits, scan_texts
from roots_pipeline.text.contamination_characters import folding
from roots_pipeline.text.contamination_tables import window_hashes
from roots_pipeline.text.contamination_words import read_words

OVERLAP, ITEMS = "contamination_overlap", "contamination_items"
FOUND, NAMES = pa.list_(pa.int64()), pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class ContaminationScan(Map):
    """Adds the column `column`: ids of the n-grams found, and -1 - number for each short item; null if there are none.

    With the rule `jaccard` the column has the most similar item, and the similarity as the bits of a float: both are
    final here. What an earlier stage has noted in the measures stays.
    """

    name: ClassVar[str] = "contamination_scan"
    evaluations: tuple[Evaluation, ...]
    matching: Matching
    content: str
    column: str

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.column, OVERLAP, ITEMS)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found: list[Ints | None] = [None] * batch.num_rows
        names = batch.column(ITEMS) if ITEMS in batch.schema.names else pa.nulls(batch.num_rows, NAMES)
        overlaps = np.zeros(batch.num_rows)
        if OVERLAP in batch.schema.names:
            overlaps = batch.column(OVERLAP).to_numpy(zero_copy_only=False).copy()
        wanted = kept(batch)
        if wanted.any():  # to plan a run, stages are asked what they make of no documents: no index is built for that
            self._scan(batch.column("text"), wanted, found, overlaps)
        columns = {self.column: pa.array(found, FOUND), OVERLAP: pa.array(overlaps), ITEMS: names}
        return with_columns(batch, columns)

    def _scan(self, text: pa.Array, wanted: Bools, found: list[Ints | None], overlaps: npt.NDArray[np.float64]) -> None:
        index = load_index(self.evaluations, self.matching, self.content)
        hits = find_hits(index, text, wanted)
        for row, whats in by_text(hits):
            found[row] = here = different(whats)
            grams = here[here >= 0]
            if self.matching.rule == "overlap":
                overlap = weigh(index, grams).overlaps.max(initial=0)
            else:
                item, overlap = best_jaccard(index, grams, _count_grams(index, text, row))
                found[row] = np.array([item, np.float64(overlap).view(np.int64)])
            overlaps[row] = max(overlaps[row], overlap)


def find_hits(index: EvaluationIndex, text: pa.Array, wanted: Bools) -> Hits:
    """Hits of the index in a column of texts; see `scan_texts`."""
    data, offsets = text_buffers(text)
    return scan_texts(data, offsets, wanted, folding(), index.tables)


def by_text(hits: Hits) -> list[tuple[int, Ints]]:
    """What was found in each text that has hits."""
    rows, first = np.unique(hits[:, 0], return_index=True)
    bounds = [*first.tolist(), len(hits)]
    return [(row, hits[a:b, 1]) for row, (a, b) in zip(rows.tolist(), pairwise(bounds), strict=True)]


def _count_grams(index: EvaluationIndex, text: pa.Array, row: int) -> int:
    """How many different n-grams a text has; a shorter one counts as one."""
    words = read_words(*text_buffers(text.slice(row, 1)), folding())
    return max(1, len(np.unique(window_hashes(words.hashes, index.ngram))))
