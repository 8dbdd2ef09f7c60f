"""What the corpus of a run is known to hold of a task's items.

Goes in: the corpus that a model was trained on, compared with evaluation sets by the stage `decontaminate`, and a task
whose lines are records of one of them. Comes out: which items were found. What cannot be known is said to be unknown,
with the reason: an item that was never looked for is not clean.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.lock import NAME, read_lock
from roots_pipeline.core.errors import RootbloomError, StaleDataError
from roots_pipeline.core.manifest import Manifest, read_manifest
from roots_pipeline.core.storage import read_json
from train.evaluation.evaluation_sets import EvaluationSet, Stage, files_of, records_of, stages_of
from train.evaluation.tasks import Item, TaskConfig

_FOUND = "contamination_items"  # column of a document: the items it holds
_DONE = {"drop": "dropped", "cut": "kept without the items", "report": "kept"}


@dataclass(frozen=True, slots=True)
class Trained:
    """Where a model comes from: the folder of its run, and the hash of weights of others that it began with, if any."""

    run: Path
    origin: str | None = None

    @property
    def corpus(self) -> Path:
        """What the model was trained on. Raises StaleDataError if RUN/corpus is another one, or nothing was noted."""
        corpus, lock = self.run / "corpus", self.run / "model" / NAME
        if not lock.is_file():
            raise StaleDataError("it was not noted which corpus the model was trained on.")
        if read_lock(str(lock)).corpus != read_manifest(str(corpus)).fingerprint:
            raise StaleDataError("the run's corpus is not the one that the model was trained on.")
        return corpus


@dataclass(frozen=True, slots=True)
class Contamination:
    """Of one task. `found` are places in its list of items; the rest is counted over the whole evaluation set."""

    evaluation: str
    searched: int  # items of the task that were looked for
    found: tuple[int, ...]
    documents: int  # that hold an item of the set
    action: str  # what became of these documents
    unsearchable: int | None  # items of the set that are too short or too common to be found; None: no review tells
    origin: str | None = None  # hash of the weights that the model began with; nobody knows what these had seen

    def facts(self, items: int) -> dict[str, Any]:
        """For programs; `items` is the number of the task's."""
        return {
            "known": True,
            "evaluation": self.evaluation,
            "searched": self.searched,
            "found": len(self.found),
            "share": len(self.found) / self.searched,
            "not_searched": items - self.searched,
            "documents": self.documents,
            "action": self.action,
            "unsearchable": self.unsearchable,
            "origin": self.origin,
        }

    def sentence(self, items: int) -> str:
        """For people."""
        searched = f"{self.searched}" if self.searched == items else f"the {self.searched} (of {items}) looked for"
        text = f"{len(self.found)} of {searched} items found in the corpus"
        if self.found:
            share = len(self.found) / self.searched
            text += f" ({share:.1%}); documents that hold items of this set were {_DONE[self.action]}"
        if self.unsearchable:
            text += f"; of the set {self.unsearchable} are too short or too common to be found"
        if self.origin:
            text += "; what the weights that it began with had seen is unknown"
        return text


def contamination(trained: Trained | None, task: TaskConfig, file: Path, items: Sequence[Item]) -> Contamination | str:
    """What is known of a task's items (`file` holds them), or why nothing is.

    The set is the one that the task's `evaluation` names, else the one of the task's name, else the one of this file.
    """
    if trained is None:
        return "no run, so nobody knows what the model was trained on"
    try:
        corpus = trained.corpus
        manifest = read_manifest(str(corpus))
        stages = stages_of(manifest.config)
        if not stages:
            return "the corpus was not compared with any evaluation set"
        stage, own = _set_of(stages, task, file)
        ids = records_of(stage, own)
        held = _held(corpus, manifest.fingerprint)
    except RootbloomError as error:
        return error.message.rstrip(".")
    except (OSError, pa.ArrowException) as error:
        return f"the corpus cannot be read ({error})"
    places = [ids.get(item.record) for item in items]
    searched = sum(one is not None for one in places)
    if not searched:
        return f"none of its lines is a record of the evaluation set {own.name}"
    documents, hits = held.get(own.name, (0, frozenset()))
    found = tuple(number for number, one in enumerate(places) if one is not None and not hits.isdisjoint(one))
    unsearchable = _unsearchable(corpus, manifest, own.name)
    return Contamination(own.name, searched, found, documents, own.action, unsearchable, trained.origin)


def _set_of(stages: list[Stage], task: TaskConfig, file: Path) -> tuple[Stage, EvaluationSet]:
    known = [(stage, one) for stage in stages for one in stage.sets]
    for stage, one in known:
        if one.name == (task.evaluation or task.name):
            return stage, one
    names = ", ".join(one.name for _, one in known)
    if task.evaluation is None:
        for stage, one in known:
            with suppress(StaleDataError):
                if any(path.samefile(file) for _, path in files_of(one)):
                    return stage, one
    raise StaleDataError(
        f"the corpus was not compared with a set called {task.evaluation or task.name} (its sets: {names})."
    )


@lru_cache(maxsize=1)
def _held(corpus: Path, fingerprint: str) -> dict[str, tuple[int, frozenset[str]]]:
    """(documents that hold an item, items held) of each set, from the documents of a corpus, kept and rejected."""
    documents: dict[str, int] = {}
    items: dict[str, set[str]] = {}
    for part in ("documents", "rejected"):
        for path in sorted((corpus / part).glob("*.parquet")):
            with pq.ParquetFile(path) as file:
                if _FOUND not in file.schema_arrow.names:
                    continue
                for batch in file.iter_batches(columns=[_FOUND]):
                    column = batch.column(0)
                    for row in column.filter(pc.is_valid(column)).to_pylist():
                        pairs = [name.split("/", 1) for name in row]
                        for name, item in pairs:
                            items.setdefault(name, set()).add(item)
                        for name in {name for name, _ in pairs}:
                            documents[name] = documents.get(name, 0) + 1
    return {name: (documents[name], frozenset(items[name])) for name in items}


def _unsearchable(corpus: Path, manifest: Manifest, name: str) -> int | None:
    """Items of a set that cannot be found, as the review of this corpus says; None without one."""
    table, counts = corpus / "contamination.parquet", corpus / "contamination.json"
    if not (table.is_file() and counts.is_file()):
        return None
    made_for = (pq.read_schema(table).metadata or {}).get(b"corpus", b"").decode()
    if made_for != manifest.fingerprint:
        return None
    for one in read_json(str(counts)):
        if one["name"] == name:
            return int(one["too_short"]) + int(one["too_common"])
    return None
