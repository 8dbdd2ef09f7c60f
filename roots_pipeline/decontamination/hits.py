"""The hits of a finished corpus: every document, kept or rejected, with every evaluation item it holds.

The items come from the evaluation files again, which must still be those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.columns import open_parquet
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import join, list_files
from roots_pipeline.decontamination.consequences import VERDICT
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.index import Tally
from roots_pipeline.decontamination.items import read_items
from roots_pipeline.decontamination.passages import Part, Reading, common_passages, read
from roots_pipeline.decontamination.scanning import ITEMS, OVERLAP
from roots_pipeline.decontamination.stage import Decontaminate

_COMMAND = "python -m roots_pipeline run"
_COLUMNS = ("id", "source", "language", "url", "text", "verdict", OVERLAP, ITEMS)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and an item that contaminates it."""

    evaluation: str
    item: str
    share: float | None  # of the item's words, those in n-grams of the document, common ones too; None: text not stored
    overlap: float  # the largest of the document with any item, as the stage measured it
    document: str
    source: str
    language: str | None
    url: str | None
    outcome: str  # dropped, cut, reported, or the verdict of another stage
    document_passage: list[Part]  # empty if it was cut out or not stored
    item_passage: list[Part]


@dataclass(frozen=True, slots=True)
class _Set:
    """An evaluation set of the run, and the texts of its items."""

    stage: Decontaminate
    tally: Tally
    texts: dict[str, str]


def stages_of(manifest: Manifest, folder: str) -> list[Decontaminate]:
    """The stages `decontaminate` that made a corpus. Raises StaleDataError without one, or if its files changed."""
    stages = []
    for entry in manifest.config["stages"]:
        if entry.get("stage") == Decontaminate.name:
            # A manifest of an older version may lack settings that came later; the defaults are what it did.
            settings = {field.name: entry[field.name] for field in fields(Decontaminate)
                        if field.init and field.name in entry}
            settings["evaluations"] = tuple(_evaluation(given) for given in entry["evaluations"])
            stage = Decontaminate(**settings)
            if stage.located != entry["content"]:
                raise StaleDataError("the files of an evaluation set have changed since this corpus was made.",
                                     where=folder, hint=f"Run `{_COMMAND}` again.")
            stages.append(stage)
    if not stages:
        raise StaleDataError("this corpus was not compared with any evaluation set.", where=folder,
                             hint=f"Add the stage `{Decontaminate.name}` to the recipe and run `{_COMMAND}` again.")
    return stages


def _evaluation(given: dict[str, Any]) -> Evaluation:
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return Evaluation(**settings)


def find_sets(stages: list[Decontaminate]) -> dict[str, _Set]:
    """The evaluation sets of all stages by name; of a name used by two stages the first counts."""
    sets: dict[str, _Set] = {}
    for stage in stages:
        index = stage.index
        for evaluation, tally in zip(stage.evaluations, index.tallies, strict=True):
            if evaluation.name not in sets:
                texts: dict[str, str] = {}
                for item in read_items(evaluation):
                    texts.setdefault(item.id, item.text)
                sets[evaluation.name] = _Set(stage, tally, texts)
    return sets


def find_hits_of(folder: str, sets: dict[str, _Set], rejected_text: str) -> Iterator[Hit]:
    """All hits in the documents and rejected documents of a corpus, in order of files and rows.

    `rejected_text` is the setting of the recipe: how much of the text of rejected documents was stored.
    """
    for part in ("documents", "rejected"):
        for path in list_files(join(folder, part), ".parquet"):
            file = open_parquet(path)
            present = [name for name in _COLUMNS if name in file.schema_arrow.names]
            if ITEMS not in present:
                continue
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number, columns=present, use_threads=False)
                for row in rows.filter(pc.is_valid(rows.column(ITEMS))).to_pylist():
                    document = read(row["text"] or "")
                    whole = part == "documents" or rejected_text == "full"
                    for name in row[ITEMS]:
                        yield _hit(row, document, whole, name, sets)


def _hit(row: dict[str, Any], document: Reading, whole: bool, name: str, sets: dict[str, _Set]) -> Hit:
    evaluation, _, item = name.partition("/")
    own = sets[evaluation]
    verdict = row.get("verdict")
    outcome = "dropped" if verdict == VERDICT else verdict or {"cut": "cut", "report": "reported"}[own.stage.action]
    common = common_passages(document, read(own.texts[item]), own.stage.ngram)
    share = common.share if whole and outcome != "cut" else None
    return Hit(evaluation, item, share, row[OVERLAP], row["id"], row["source"], row["language"], row["url"], outcome,
               common.document if common.share > 0 else [], common.item)


HITS = pa.schema([
    *((name, pa.string()) for name in ("evaluation", "item")), ("share", pa.float64()), ("overlap", pa.float64()),
    *((name, pa.string()) for name in ("document", "source", "language", "url", "outcome", "document_passage",
                                       "item_passage")),
])


def as_table(hits: list[Hit]) -> pa.Table:
    """One row a hit; passages as plain text."""
    rows = [{field.name: getattr(hit, field.name) for field in fields(Hit)} for hit in hits]
    for row in rows:
        for name in ("document_passage", "item_passage"):
            row[name] = "".join(part.text for part in row[name])
    return pa.Table.from_pylist(rows, schema=HITS)
