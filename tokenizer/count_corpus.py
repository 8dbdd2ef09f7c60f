"""Count a whole corpus on any engine: one task a shard, then a tree of merges.

In: RUN/corpus, as its manifest lists it. Out: RUN/tokenizer/counts.parquet. Everything between lies in
RUN/tokenizer/.work/counts and stays there, so that a changed or added shard counts only itself anew: `shards`
holds files named by the shards, `merges` files named by us, so no source can have the name of a merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from roots_pipeline.core.errors import EmptyOutputError
from roots_pipeline.core.manifest import check_files, read_manifest
from roots_pipeline.core.storage import fingerprint, join
from roots_pipeline.core.tasks import Engine, Task
from tokenizer.content import whole_result
from tokenizer.count import COUNT_VERSION, count_shard
from tokenizer.merge import merge_shards
from tokenizer.pretokenize import PATTERN

COUNTS = "counts.parquet"
_FAN_IN = 32  # tables that one task merges; bounds its memory and open files
_DOCUMENTS = "documents/"


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """A counted corpus. `path`: its count table; `fingerprint`: of all that decides it; `corpus`: the
    fingerprint of the corpus; `documents`, `bytes`: totals; `languages`: by language `documents`, `bytes`,
    `pieces` and `occurrences`."""

    path: str
    fingerprint: str
    corpus: str
    documents: int
    bytes: int
    languages: dict[str, dict[str, int]]


def count_corpus(engine: Engine, corpus_folder: str, run_folder: str) -> CorpusCounts:
    """Count the pieces of all documents of a corpus, per language, into RUN_FOLDER/counts.parquet.

    Shards that were counted before are not read again. Raises StaleDataError if the corpus is unfinished or its
    files are not those of its manifest (the content of a file is compared when it is counted), EmptyOutputError
    if it holds no text.
    """
    corpus = read_manifest(corpus_folder, made_by="python -m roots_pipeline run")
    check_files(corpus_folder, corpus)
    work = join(run_folder, ".work", "counts")
    shards = {name: facts["xxh3"] for name, facts in sorted(corpus.files.items()) if name.startswith(_DOCUMENTS)}
    tasks = [_count_task(join(corpus_folder, name), name, content, work) for name, content in shards.items()]
    results = engine.run(tasks, "count pieces")
    if not sum(result["bytes"] for result in results):
        raise EmptyOutputError(
            "the corpus holds no text.", where=corpus_folder, hint="Look at its report to see what its rules dropped."
        )
    merging = _merge_tasks(engine, tasks, work, join(run_folder, COUNTS))
    whole_result(merging)  # a damaged table is merged again
    merged = engine.run([merging], "merge counts")[0]
    languages: dict[str, dict[str, int]] = {}
    for result in results:
        for name, facts in result["languages"].items():
            totals = languages.setdefault(name, {"documents": 0, "bytes": 0, "pieces": 0, "occurrences": 0})
            totals["documents"] += facts["documents"]
            totals["bytes"] += facts["bytes"]
    for name, facts in merged["languages"].items():
        languages[name].update(facts)
    return CorpusCounts(
        join(run_folder, COUNTS), merging.fingerprint, corpus.fingerprint,
        sum(result["documents"] for result in results), sum(result["bytes"] for result in results),
        dict(sorted(languages.items())),
    )  # fmt: skip


def _count_task(path: str, name: str, content: str, work: str) -> Task:
    stem = PurePosixPath(name).stem
    mark = fingerprint(["count", COUNT_VERSION, PATTERN, content])
    arguments = {"documents": path, "content": content, "output": join(work, "shards", f"{stem}.parquet")}
    return Task(f"count {stem}", join(work, "shards", f"{stem}.json"), mark, count_shard, arguments)


def _merge_tasks(engine: Engine, tasks: Sequence[Task], work: str, output: str) -> Task:
    """Merge level by level until one task remains, and return that one, not yet run."""
    level = 0
    while len(tasks) > _FAN_IN:
        level += 1
        groups = [tasks[start : start + _FAN_IN] for start in range(0, len(tasks), _FAN_IN)]
        tasks = [
            _merge_task(group, join(work, "merges", f"merge-{level}-{number:05d}.parquet"), work)
            for number, group in enumerate(groups)
        ]
        engine.run(tasks, f"merge counts, level {level}")
    return _merge_task(tasks, output, work)


def _merge_task(parts: Sequence[Task], output: str, work: str) -> Task:
    stem = PurePosixPath(output).stem
    arguments: dict[str, Any] = {"inputs": [part.arguments["output"] for part in parts], "output": output}
    mark = fingerprint(["merge", COUNT_VERSION, *(part.fingerprint for part in parts)])
    return Task(f"merge {stem}", join(work, "merges", f"{stem}.json"), mark, merge_shards, arguments)
