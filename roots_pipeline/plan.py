"""What a run would do, before it is done: inputs, tasks, what is reused, and, from a sample, time and disk.

In: a recipe and the folder of a run. Out: a `RunPlan`. Files, bytes, shards and tasks are counted from names, sizes and
records; no input is read whole. (How many tasks resolve an exchange follows from the bytes of its keys, which are
predicted.) Time, disk and the share that is kept come from really running the recipe on the beginnings of some files of
every source, in this process: a small sample first, which also compiles, then a larger one that fills the time. What
both cost gives a rate and a fixed effort. Duplicates are rarer in a sample than in all, so the share that is kept is
an upper bound where stages deduplicate.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roots_pipeline.config import CorpusRecipe, SourceEntry
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.replay import Unfinished
from roots_pipeline.core.tasks import Task, finished_result, run_task
from roots_pipeline.run import run_corpus
from roots_pipeline.samples import Sample, write_sample
from roots_pipeline.schedule import Schedule, resolve_bytes
from roots_pipeline.shards import Shard, plan_shards

_SMALL_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """One source. `documents`, `text_bytes` and `kept_share` are predicted (None: the sample held none of it)."""

    name: str
    kind: str
    files: int
    bytes: int
    shards: int
    documents: int | None
    text_bytes: int | None
    kept_share: float | None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step: its tasks, and how many have been done already; those behind the first open step count as open."""

    title: str
    tasks: int
    reused: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of a run in which nothing is reused; seconds and bytes."""

    sample_bytes: int
    cpu_seconds: float
    wall_seconds: float
    stage_bytes: int
    output_bytes: int
    kept_share: float


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All of it. `workers` is what `wall_seconds` holds for."""

    sources: tuple[PlannedSource, ...]
    steps: tuple[PlannedStep, ...]
    workers: int
    prediction: Prediction


@dataclass(frozen=True, slots=True)
class _Trial:
    """A run on a sample: what it read and cost, and the steps it had: title, tasks, sources, bytes of keys."""

    sample: Sample
    manifest: Manifest
    cpu: float
    stage_bytes: int
    output_bytes: int
    steps: tuple[tuple[str, int, frozenset[str], int], ...]


class _Here:
    """An engine in this process that notes what it ran."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, frozenset[str], int]] = []

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        results = [run_task(task) for task in tasks]
        keys = sum(sum(result.get("slices", ())) for result in results)
        self.steps.append((title, len(tasks), frozenset(task.name.rpartition("-")[0] for task in tasks), keys))
        return results


class _Looking:
    """An engine that notes what is recorded, and stops behind the first step with tasks to do."""

    def __init__(self) -> None:
        self.steps: list[PlannedStep] = []

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        found = [finished_result(task) for task in tasks]
        results = [result for result in found if result is not None]
        self.steps.append(PlannedStep(title, len(tasks), len(results)))
        if len(results) < len(tasks):
            raise Unfinished(title, tasks, [place for place, result in enumerate(found) if result is None])
        return results


def plan_corpus(recipe: CorpusRecipe, folder: str, workers: int, seconds: float = 10.0) -> RunPlan:
    """Plan a run; running samples takes about `seconds`. Raises what planning the run itself would raise."""
    shards = plan_shards(recipe)
    small = _try(recipe, shards, _SMALL_BYTES)
    began = time.process_time()
    trial = _try(recipe, shards, _SMALL_BYTES)  # the first one compiled
    spent = time.process_time() - began
    rate = max(1.0, trial.sample.bytes / max(0.01, trial.cpu))
    wanted = int(rate * max(0.0, seconds - spent - small.cpu))
    if wanted > 2 * _SMALL_BYTES and trial.sample.bytes < sum(shard.size for shard in shards):
        small, trial = trial, _try(recipe, shards, wanted)
    else:
        small = trial
    sources = tuple(_source(entry, shards, trial) for entry in recipe.sources)
    total = sum(_bytes_read(source, entry.limit) for source, entry in zip(sources, recipe.sources, strict=True))
    cpu = _at(total, small, trial, "cpu")
    counts = trial.manifest.counts
    return RunPlan(
        sources, tuple(_steps(recipe, folder, shards, trial)), workers,
        Prediction(
            trial.sample.bytes, round(cpu, 1), round(cpu / min(workers, len(shards)), 1),
            int(_at(total, small, trial, "stage_bytes")), int(_at(total, small, trial, "output_bytes")),
            round(counts["kept"] / max(1, counts["read"]), 4),
        ),
    )


def _try(recipe: CorpusRecipe, shards: Sequence[Shard], wanted: int) -> _Trial:
    """Run the recipe on about `wanted` bytes of its input."""
    with tempfile.TemporaryDirectory() as scratch:
        sample = write_sample(recipe, shards, wanted, Path(scratch, "input"))
        folder, engine = Path(scratch, "corpus"), _Here()
        began = time.process_time()
        manifest = run_corpus(sample.recipe, str(folder), engine, Progress(quiet=True))
        cpu = time.process_time() - began
        sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
        stages = sum(size for path, size in sizes.items() if ".work" in path.parts)
        output = sum(sizes.values()) - stages
        return _Trial(_measured(sample, manifest), manifest, cpu, stages, output, tuple(engine.steps))


def _measured(sample: Sample, manifest: Manifest) -> Sample:
    """Sources that were limited by documents count as the bytes of their text, for want of better."""
    text: Counter[str] = Counter()
    for source, _, _, _, length in manifest.counts["by_source_language_verdict"]:
        text[source] += length
    return replace(sample, bytes_of={name: size or text[name] for name, size in sample.bytes_of.items()})


def _at(total: int, small: _Trial, large: _Trial, what: str) -> float:
    """A cost at `total` bytes of input: on the line through both trials, never below that through the larger alone."""
    more = large.sample.bytes - small.sample.bytes
    cost: float = getattr(large, what)
    if total <= large.sample.bytes:
        return cost
    slope = (cost - getattr(small, what)) / more if more > 0 else cost / max(1, large.sample.bytes)
    return cost + max(0.0, slope) * (total - large.sample.bytes)


def _bytes_read(source: PlannedSource, limit: int | None) -> int:
    """Bytes of a source that a run reads, if it ends at a number of documents."""
    if limit is None or not source.documents or source.documents <= limit:
        return source.bytes
    return source.bytes * limit // source.documents


def _source(entry: SourceEntry, shards: Sequence[Shard], trial: _Trial) -> PlannedSource:
    name, kind = entry.name, entry.kind
    own = [shard for shard in shards if shard.source.name == name]
    size = sum(shard.size for shard in own)
    documents: Counter[bool] = Counter()
    text = 0
    for source, _, verdict, number, length in trial.manifest.counts["by_source_language_verdict"]:
        if source == name:
            documents[verdict == ""] += number
            text += length
    files = len({file.path for shard in own for file in shard.files})
    if not documents:
        return PlannedSource(name, kind, files, size, len(own), None, None, None)
    factor = max(1.0, size / max(1, trial.sample.bytes_of[name]))
    return PlannedSource(
        name, kind, files, size, len(own), round(documents.total() * factor), round(text * factor),
        round(documents[True] / documents.total(), 4),
    )


def _steps(recipe: CorpusRecipe, folder: str, shards: Sequence[Shard], trial: _Trial) -> list[PlannedStep]:
    """What the records say, up to the first step with work to do; what the trial had, behind that."""
    looking = _Looking()
    with suppress(Unfinished):
        Schedule(recipe, folder, looking=True)(looking)
    of_source = Counter(shard.source.name for shard in shards)
    growth = max(1.0, sum(shard.size for shard in shards) / max(1, trial.sample.bytes))
    steps, keys, resolving = looking.steps, 0, 0
    for number, (title, tasks, sources, size) in enumerate(trial.steps):
        if title.startswith("resolve "):
            expected = round(keys * growth)
            resolving = max(tasks, math.ceil(expected / resolve_bytes(expected)))
            tasks = resolving
        elif title == "publish":
            tasks = resolving
        else:
            apart = "" in sources  # one task that is of no source: the records of evaluation sets
            tasks, keys = sum(of_source[name] for name in sources) + apart, size
        if number >= len(steps):
            steps.append(PlannedStep(title, tasks, 0))
    return steps
