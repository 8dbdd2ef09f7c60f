"""What decontamination found: a short version of the review, if it has been written for this corpus.

    python -m roots_pipeline review --run RUN

writes `contamination.json` and `contamination.parquet`; the latter carries the fingerprint of its corpus.
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import exists, is_remote, join, open_read, read_json
from roots_pipeline.report.differences import Piece, compare
from roots_pipeline.report.drawing_lots import Lots
from roots_pipeline.report.gallery_facts import Contamination, EvaluationSet, Match
from roots_pipeline.report.reading import TABLE_ROWS, batches

_STAGE = "decontaminate"
_MATCHES, _SETS = 3, 20  # shown of each evaluation set, and sets with matches


def collect_contamination(corpus: str, manifest: Manifest) -> Contamination | None:
    """The review's counts and some matches; None if the corpus was not compared with any evaluation set."""
    if not any(stage.get("stage") == _STAGE for stage in manifest.config["stages"]):
        return None
    table, counts = join(corpus, "contamination.parquet"), join(corpus, "contamination.json")
    if not (exists(table) and exists(counts)):
        return Contamination(False, (), ())
    with pq.ParquetFile(open_read(table) if is_remote(table) else table) as file:
        if (file.schema_arrow.metadata or {}).get(b"corpus", b"").decode() != manifest.fingerprint:
            return Contamination(False, (), ())
        matches = _draw(file)
    sets = [EvaluationSet(str(row["name"]), int(row["items"]), int(row["items_found"]), int(row["documents"]),
                          tuple((str(name), int(number)) for name, number in row["outcomes"].items()))
            for row in read_json(counts)]
    return Contamination(True, tuple(sets[:TABLE_ROWS]), tuple(matches))


def _draw(file: pq.ParquetFile) -> list[Match]:
    lots: dict[str, Lots[dict[str, Any]]] = {}
    for batch in batches(file, file.schema_arrow.names):
        for row in batch.to_pylist():
            name = str(row["evaluation"])
            if name in lots or len(lots) < _SETS:
                drawn = lots.setdefault(name, Lots(_MATCHES))
                key = f"{row['document']}\n{row['item']}"
                if drawn.takes(key):
                    drawn.put(key, row)
    return [_match(row) for own in lots.values() for _, row in sorted(own.drawn.items())]


def _match(row: dict[str, Any]) -> Match:
    document, item = str(row["document_passage"] or ""), str(row["item_passage"] or "")
    left, right = compare(document, item) if document and item else (_alone(document), _alone(item))
    return Match(str(row["evaluation"]), str(row["item"]), str(row["document"]), str(row["source"]),
                 str(row["language"] or ""), str(row["outcome"]), float(row["overlap"]), left, right)


def _alone(text: str) -> tuple[Piece, ...]:
    return (Piece(text, "same"),) if text else ()
