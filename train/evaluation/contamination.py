"""What the corpus of a run is known to hold of a task's items.

Goes in: the corpus that a model was trained on, compared with evaluation sets by the stage `decontaminate`, and a task
whose lines are records of one of them. The corpus step has written which record is which item of which set
(`core.evaluation_records`). Comes out: which items were found. What cannot be known is said to be unknown, with the
reason: an item that was never looked for is not clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.lock import NAME, read_lock
from roots_pipeline.core.errors import RootbloomError, StaleDataError
from roots_pipeline.core.evaluation_records import MOST_ITEMS, find_records
from roots_pipeline.core.manifest import Manifest, read_manifest
from roots_pipeline.core.storage import read_json
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
    action: str  # what became of these documents; of a set that several stages have, all that they do
    unsearchable: int | None  # items of the set that are too short or too common to be found; None: no review tells
    not_compared: tuple[str, ...] = ()  # groups of sources that no stage with the set works on
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
            "not_compared": list(self.not_compared),
            "origin": self.origin,
        }

    def sentence(self, items: int) -> str:
        """For people."""
        searched = f"{self.searched}" if self.searched == items else f"the {self.searched} (of {items}) looked for"
        text = f"{len(self.found)} of {searched} items found in the corpus"
        if self.found:
            share = len(self.found) / self.searched
            done = " or ".join(_DONE[action] for action in self.action.split(", "))
            text += f" ({share:.1%}); documents that hold items of this set were {done}"
        if self.unsearchable:
            text += f"; of the set {self.unsearchable} are too short or too common to be found"
        if self.not_compared:
            text += f"; documents of {', '.join(self.not_compared)} were not compared with it"
        if self.origin:
            text += "; what the weights that it began with had seen is unknown"
        return text


def contamination(trained: Trained | None, task: TaskConfig, items: Sequence[Item]) -> Contamination | str:
    """What is known of a task's items, or why nothing is.

    The set is the one that the task's `evaluation` names, else the one of the task's name, else the one that most of
    its items are records of.
    """
    if trained is None:
        return "no run, so nobody knows what the model was trained on"
    try:
        corpus = trained.corpus
        manifest = read_manifest(str(corpus))
        sets = _sets_of(manifest)
        if not sets:
            return "the corpus was not compared with any evaluation set"
        own, ids = _set_of(sets, find_records(str(corpus), manifest, [item.record for item in items]), task, items)
        held, crowded = _held(corpus, manifest.fingerprint)
    except RootbloomError as error:
        return error.message.rstrip(".")
    except (OSError, pa.ArrowException) as error:
        return f"the corpus cannot be read ({error})"
    places = [ids.get(item.record) for item in items]
    searched = sum(one is not None for one in places)
    if not searched:
        return f"none of its lines is a record of the evaluation set {own}"
    documents, hits = held.get(own, (0, frozenset()))
    found = tuple(number for number, one in enumerate(places) if one in hits)
    if crowded and len(found) < searched:
        return f"a document holds {MOST_ITEMS} items or more and names no others, so which were not found is unknown"
    unsearchable = _unsearchable(corpus, manifest, own)
    apart = sets[own].not_compared
    return Contamination(own, searched, found, documents, sets[own].action, unsearchable, apart, trained.origin)


@dataclass(frozen=True, slots=True)
class _Compared:
    """What the manifest says of a set. `one`: all stages that have a set of this name mean the same one."""

    action: str
    one: bool
    not_compared: tuple[str, ...]  # groups of sources


def _sets_of(manifest: Manifest) -> dict[str, _Compared]:
    """The sets that a corpus was compared with, by name, in order of stages."""
    groups = sorted({source["group"] for source in manifest.config.get("sources", [])})
    stages: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for entry in manifest.config.get("stages", []):
        if entry.get("stage") == "decontaminate":
            for given in entry["evaluations"]:
                stages.setdefault(given["name"], []).append((entry, given))
    sets = {}
    for name, own in stages.items():
        actions = dict.fromkeys(entry["action"] for entry, _ in own)
        one = all(given == own[0][1] for _, given in own)
        compared = {group for entry, _ in own for group in entry.get("groups") or groups}
        apart = tuple(group for group in groups if group not in compared)
        sets[name] = _Compared(", ".join(actions), one, apart)
    return sets


def _set_of(
    sets: dict[str, _Compared], records: Sequence[tuple[str, str, bytes]], task: TaskConfig, items: Sequence[Item]
) -> tuple[str, dict[bytes, str]]:
    """The set that a task is of, and what it calls the records among the task's lines. Raises StaleDataError."""
    ids: dict[str, dict[bytes, str]] = {name: {} for name in sets}
    for name, item, record in records:
        ids[name][record] = item
    own = task.evaluation or task.name
    if own not in sets and task.evaluation is None:
        held = Counter(name for item in items for name, of_set in ids.items() if item.record in of_set)
        own = max(sets, key=lambda name: held[name]) if held else own
    if own not in sets:
        raise StaleDataError(f"the corpus was not compared with a set called {own} (its sets: {', '.join(sets)}).")
    if not sets[own].one:
        raise StaleDataError(f"stages of the corpus have different sets called {own}, so nobody knows which was found.")
    return own, ids[own]


@lru_cache(maxsize=1)
def _held(corpus: Path, fingerprint: str) -> tuple[dict[str, tuple[int, frozenset[str]]], bool]:
    """(documents that hold an item, items held) of each set, from the documents of a corpus, kept and rejected.

    And whether a document may hold more items than it names.
    """
    crowded = False
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
                        crowded = crowded or len(row) >= MOST_ITEMS
                        pairs = [name.split("/", 1) for name in row]
                        for name, item in pairs:
                            items.setdefault(name, set()).add(item)
                        for name in {name for name, _ in pairs}:
                            documents[name] = documents.get(name, 0) + 1
    return {name: (documents[name], frozenset(items[name])) for name in items}, crowded


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
