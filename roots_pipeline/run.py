"""Run a recipe: have its schedule followed by an engine, check the sums, write the manifest.

In: a checked recipe. Out: `documents/`, `rejected/`, `quarantine/`, `pairs/`, `evaluations.parquet` and `manifest.json`
in the corpus folder.
What to run, and in what order, is `pipeline`'s; which tasks that makes is `schedule`'s; what a task does is `steps`'.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roots_pipeline.config import CorpusRecipe
from roots_pipeline.core.errors import EmptyOutputError
from roots_pipeline.core.evaluation_records import NAME as EVALUATIONS
from roots_pipeline.core.evaluation_records import content_fingerprint
from roots_pipeline.core.manifest import Manifest, note_history, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.replay import follow
from roots_pipeline.core.storage import (
    is_remote,
    join,
    list_files,
    lock_folder,
    remove_file,
    sweep_temporaries,
)
from roots_pipeline.core.tasks import Engine
from roots_pipeline.removal import count_table
from roots_pipeline.schedule import Outcome, Schedule


def run_corpus(recipe: CorpusRecipe, folder: str, engine: Engine, progress: Progress) -> Manifest:
    """Run a recipe into a folder and return its manifest.

    Raises SourceError (missing input, too many bad records), EmptyOutputError, StorageError, EngineError.
    """
    started = time.time()
    with lock_folder(folder):
        sweep_temporaries(folder)
        schedule = Schedule(recipe, folder)
        progress.event("inputs", files=len(schedule.files), bytes=sum(shard.size for shard in schedule.shards))
        outcome = follow(schedule, engine, schedule.rounds)
        return _Closing(schedule, outcome).finish(started)


class _Closing:
    """What is done when all tasks are."""

    def __init__(self, schedule: Schedule, outcome: Outcome) -> None:
        self.recipe, self.folder = schedule.recipe, schedule.folder
        self.shards, self.outcome = outcome.shards, outcome

    def finish(self, started: float) -> Manifest:
        """Write the manifest."""
        outcome = self.outcome
        read, results, published = outcome.read, outcome.written, outcome.published
        self._remove_strangers(read, {name for part in published for name in part["files"]})
        table: Counter[tuple[str, str, str]] = Counter()
        sizes: Counter[tuple[str, str, str]] = Counter()
        for shard, result in zip(self.shards, results, strict=True):
            for language, verdict, documents, size in result["by_language_and_verdict"]:
                table[shard.source.name, language, verdict] += documents
                sizes[shard.source.name, language, verdict] += size
        counted = count_table(table, sizes)
        rows = sum(result["rows"] for result in read)
        if rows != sum(table.values()):
            raise AssertionError(f"read {rows} documents but wrote {sum(table.values())}")
        self._check_empty(counted["kept"], rows, table)
        files = {name: entry for result in (*results, *published) for name, entry in result["files"].items()}
        counts = {
            "read": rows, "bad_records": sum(result["bad"] for result in read), **counted,
        }
        inputs = {shard.name: [[file.path, outcome.hashes[file.path]] for file in shard.files]
                  for shard in self.shards}
        stages = [{"groups": entry.groups, **entry.made.parameters()} for entry in self.recipe.stages]
        config = {**self.recipe.model_dump(mode="json"), "stages": stages}
        manifest = write_manifest(
            self.folder, "corpus", config=config, inputs=inputs, counts=counts,
            fingerprint=content_fingerprint(files), files=files,
        )
        note_history(self.folder, started, step="corpus", kept=counted["kept"], rejected=counted["rejected"])
        return manifest

    def _check_empty(self, kept: int, rows: int, table: Counter[tuple[str, str, str]]) -> None:
        if kept or self.recipe.allow_empty:
            return
        verdicts: Counter[str] = Counter()
        for (_, _, verdict), documents in table.items():
            verdicts[verdict] += documents
        reasons = ", ".join(f"{name} {number}" for name, number in verdicts.most_common(5))
        cause = f"all {rows} documents were dropped ({reasons})." if rows else "the sources hold no readable document."
        step = "Loosen the stages of the recipe." if rows else "Check the sources: are the files empty?"
        raise EmptyOutputError(cause, where=self.folder, hint=f"{step} Set allow_empty: true if this is wanted.")

    def _remove_strangers(self, read: Sequence[dict[str, Any]], published: set[str]) -> None:
        """Files of shards and stages that this recipe no longer has."""
        known = {f"{shard.name}.parquet" for shard in self.shards}
        bad = {f"{shard.name}.parquet" for shard, result in zip(self.shards, read, strict=True) if result["bad"]}
        pairs = {name.rpartition("/")[2] for name in published}
        if EVALUATIONS not in published:
            remove_file(join(self.folder, EVALUATIONS))
        for part, names in (("documents", known), ("rejected", known), ("quarantine", bad), ("pairs", pairs)):
            for path in list_files(join(self.folder, part), ".parquet"):
                if path.rsplit("/", 1)[-1] not in names:
                    remove_file(path)
        if not is_remote(self.folder):
            prefixes = {shard.name for shard in self.shards}
            for step in Path(self.folder, ".work").glob("*-*"):
                for file in step.iterdir():
                    if file.stem not in prefixes and not file.stem.isdigit():
                        file.unlink()
