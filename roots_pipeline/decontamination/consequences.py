"""What findings do to a batch: measures are noted, documents get a verdict, passages are cut out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.evaluation_records import MOST_ITEMS
from roots_pipeline.decontamination.cutting import Span, count_words, cut
from roots_pipeline.decontamination.index import EvaluationIndex, Ints
from roots_pipeline.decontamination.scanning import ITEMS, NAMES, OVERLAP, find_hits

VERDICT = "contaminated"
_NOTHING = np.empty(0, np.int64)


class Contamination(NamedTuple):
    """What contaminates a document: items (the cause first), and what of them was found."""

    items: list[str]
    found: Ints


def measured_overlaps(findings: pa.Table, first_row: int) -> dict[int, float]:
    """The largest overlap of each row of a batch that heard back."""
    largest: dict[int, float] = {}
    for row, overlap in zip(findings.column("row").to_pylist(), findings.column("overlap").to_pylist(), strict=True):
        largest[row - first_row] = max(overlap, largest.get(row - first_row, 0.0))
    return largest


def contaminations(findings: pa.Table, first_row: int) -> dict[int, Contamination]:
    """The rows of a batch that are contaminated.

    The cause is the item with the largest overlap; of several, that of which more words are covered, or the first.
    """
    own: dict[int, list[dict[str, Any]]] = {}
    for line in findings.filter(findings.column("contaminated")).to_pylist():
        own.setdefault(line["row"] - first_row, []).append(line)
    found: dict[int, Contamination] = {}
    for row, lines in own.items():
        lines.sort(key=lambda line: (-line["overlap"], -line["words"], line["item"]))
        hits = np.unique([hit for line in lines for hit in line["found"]])
        found[row] = Contamination([line["cause"] for line in lines[:MOST_ITEMS]], hits)
    return found


def similar_documents(
    batch: pa.RecordBatch, index: EvaluationIndex, column: str, threshold: float
) -> dict[int, Contamination]:
    """The rows whose similarity is above the threshold; `column` has item and similarity of each, as the scan left it.

    The measure would not do: it may be that of another stage.
    """
    found = {}
    for row in np.flatnonzero(kept(batch) & batch.column(column).is_valid().to_numpy(zero_copy_only=False)).tolist():
        item, similarity = batch.column(column)[row].as_py()
        if np.int64(similarity).view(np.float64) > threshold:
            found[row] = Contamination([index.name(item)], _NOTHING)
    return found


def with_measures(
    batch: pa.RecordBatch, largest: Mapping[int, float], found: Mapping[int, Contamination]
) -> pa.RecordBatch:
    """Note overlaps and contaminating items, in front of those that an earlier stage has noted."""
    overlaps, items = batch.column(OVERLAP).to_pylist(), batch.column(ITEMS).to_pylist()
    for row, overlap in largest.items():
        overlaps[row] = max(overlap, overlaps[row]) if items[row] else overlap
    for row, contamination in found.items():
        items[row] = list(dict.fromkeys([*contamination.items, *(items[row] or ())]))
    return with_columns(batch, {OVERLAP: pa.array(overlaps, pa.float64()), ITEMS: pa.array(items, NAMES)})


def with_verdicts(batch: pa.RecordBatch, found: Mapping[int, Contamination]) -> pa.RecordBatch:
    """Drop contaminated documents."""
    verdicts, causes = batch.column("verdict").to_pylist(), batch.column("cause").to_pylist()
    for row, contamination in found.items():
        verdicts[row], causes[row] = VERDICT, contamination.items[0]
    return with_columns(batch, {"verdict": pa.array(verdicts, pa.string()), "cause": pa.array(causes, pa.string())})


def with_cuts(
    batch: pa.RecordBatch, index: EvaluationIndex, found: Mapping[int, Contamination], shortest_rest: float
) -> pa.RecordBatch:
    """Cut out what contaminates documents; drop those of which fewer words than `shortest_rest` are left, uncut."""
    rows = sorted(found)
    texts = batch.column("text").take(pa.array(rows))
    spans: dict[int, list[Span]] = {row: [] for row in rows}
    for place, what, start, stop in find_hits(index, texts, np.ones(len(rows), np.bool_)).tolist():
        if what in found[rows[place]].found:
            spans[rows[place]].append((start, stop))
    data, offsets = text_buffers(texts)
    left = [cut(data[begin:end].tobytes(), [(start - begin, stop - begin) for start, stop in spans[row]])
            for row, (begin, end) in zip(rows, pairwise(offsets.tolist()), strict=True)]
    new = {row: text for row, text, words in zip(rows, left, count_words(left), strict=True) if words >= shortest_rest}
    changed = np.zeros(batch.num_rows, np.bool_)
    changed[list(new)] = True
    replacements = pa.array(list(new.values()), pa.large_binary()).cast(pa.large_string())
    texts = pc.replace_with_mask(batch.column("text"), pa.array(changed), replacements)
    return with_verdicts(with_columns(batch, {"text": texts}), {row: found[row] for row in rows if row not in new})
