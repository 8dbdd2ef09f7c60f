"""Clusters of duplicates: a document that stayed, beside those that were dropped because of it.

In: `rejected/`, where every dropped duplicate names its cause, and `pairs/` with the similarity of pairs that were
compared one by one. A cause that is no document of this corpus (an evaluation item, a document of another corpus) makes
no cluster. Memory: the clusters drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.storage import join
from roots_pipeline.report.differences import Piece, compare
from roots_pipeline.report.drawing_lots import Lots
from roots_pipeline.report.gallery_facts import Cluster, Duplicates, Twin
from roots_pipeline.report.lookup import Found, find_documents
from roots_pipeline.report.reading import batches, parquet_files, strings

_CLUSTERS, _DROPPED, _VERDICTS = 4, 3, 8  # shown of each verdict, of each cluster, and verdicts in all
_CHARACTERS = 1200
_OTHER_CORPORA = "known_"

_Counted = dict[str, tuple[int, list[str]]]  # by cause: documents that it dropped, and the first of them


def draw_clusters(corpus: str) -> tuple[Duplicates, ...]:
    """Some clusters for each verdict that names other documents as causes, the most frequent verdict first."""
    lots, totals = _count(corpus)
    shown = {verdict: lots[verdict].drawn for verdict, _ in totals.most_common(_VERDICTS)}
    wanted = {id for drawn in shown.values() for cause, (_, ids) in drawn.items() for id in (cause, *ids)}
    found = find_documents(corpus, wanted, _CHARACTERS)
    similar = _similarities(corpus, wanted)
    galleries = [Duplicates(verdict, totals[verdict], _clusters(drawn, found, similar))
                 for verdict, drawn in shown.items()]
    return tuple(gallery for gallery in galleries if gallery.clusters)


def _count(corpus: str) -> tuple[dict[str, Lots[tuple[int, list[str]]]], Counter[str]]:
    lots: dict[str, Lots[tuple[int, list[str]]]] = {}
    totals: Counter[str] = Counter()
    for file in parquet_files(join(corpus, "rejected")):
        for batch in batches(file, ["id", "verdict", "cause"]):
            caused = batch.filter(pc.is_valid(batch.column("cause")))
            for id, verdict, cause in zip(*(strings(column) for column in caused.columns), strict=True):
                if verdict is None or cause is None or id is None or verdict.startswith(_OTHER_CORPORA):
                    continue
                if verdict not in lots and len(lots) >= 10 * _VERDICTS:
                    continue
                totals[verdict] += 1
                drawn = lots.setdefault(verdict, Lots(_CLUSTERS))
                if drawn.takes(cause):
                    number, ids = drawn.drawn.get(cause, (0, []))
                    drawn.put(cause, (number + 1, [*ids, id] if len(ids) < _DROPPED else ids))
    return lots, totals


def _similarities(corpus: str, ids: set[str]) -> dict[frozenset[str], str]:
    """How similar pairs among these ids are, as far as they were compared."""
    wanted = pa.array(sorted(ids), pa.string())
    found: dict[frozenset[str], str] = {}
    for file in parquet_files(join(corpus, "pairs")):
        value = next((name for name in ("jaccard", "distance") if name in file.schema_arrow.names), None)
        if value is None:
            continue
        for batch in batches(file, ["id", "other", value]):
            both = pc.and_(*(pc.is_in(batch.column(name).cast(pa.string()), wanted) for name in ("id", "other")))
            for row in batch.filter(both).to_pylist():
                told = f"Jaccard {row[value]:.2f}" if value == "jaccard" else f"{row[value]} bits apart"
                found[frozenset((row["id"], row["other"]))] = told
    return found


def _clusters(
    drawn: _Counted, found: Mapping[str, Found], similar: Mapping[frozenset[str], str]
) -> tuple[Cluster, ...]:
    clusters = []
    for id, (size, ids) in sorted(drawn.items()):
        if (cause := found.get(id)) is None:
            continue
        dropped = [_beside(cause, found[other], similar.get(frozenset((id, other)))) for other in ids if other in found]
        if dropped:
            # What is marked in the document that stayed is what the first of the dropped ones does not have.
            clusters.append(Cluster(_twin(cause, None, dropped[0][0]), tuple(twin for _, twin in dropped), size))
    return tuple(clusters)


def _beside(cause: Found, other: Found, similarity: str | None) -> tuple[tuple[Piece, ...] | None, Twin]:
    """Both texts, each with what the other does not have; the first is the text of the one that stayed."""
    if cause.text is None or other.text is None:
        alone = None if cause.text is None else (Piece(cause.text, "same"),)
        return alone, _twin(other, similarity, None if other.text is None else (Piece(other.text, "same"),))
    left, right = compare(cause.text, other.text)
    return left, _twin(other, similarity, right)


def _twin(found: Found, similarity: str | None, pieces: tuple[Piece, ...] | None) -> Twin:
    return Twin(found.id, found.source, found.language, found.verdict, similarity, pieces)
