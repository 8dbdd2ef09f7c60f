"""Count a whole corpus on any engine: one task a shard, then a tree of merges.

In: RUN/corpus, as its manifest lists it, or a sample of it (`sampling`). Out: RUN/tokenizer/counts.parquet. Everything
between lies in RUN/tokenizer/.work and stays there, so that a changed or added shard counts only itself anew: `shards`
holds files named by the shards, `merges` files named by us, so no source can have the name of a merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from roots_pipeline.core.errors import EmptyOutputError
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.replay import follow
from roots_pipeline.core.storage import fingerprint, join
from roots_pipeline.core.tasks import Engine, Task
from tokenizer.content import whole_result
from tokenizer.count import COUNT_VERSION, count_shard
from tokenizer.counts_file import Group
from tokenizer.merge import merge_shards
from tokenizer.pretokenizers import BLOOM, Patterns
from tokenizer.sampling.config import AnySampling, Proportional
from tokenizer.sampling.sample import Shard, draw_sample, sizes_of

COUNTS = "counts.parquet"
_FAN_IN = 32  # tables that one task merges; bounds its memory and open files
_DOCUMENTS = "documents/"
_EVERYTHING = Proportional()
_ROUNDS = 8  # steps with tasks: five of a sample, counting, and a merge of two levels


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """A counted corpus. `path`: its count table; `fingerprint`: of all that decides it; `corpus`: the
    fingerprint of the corpus; `documents`, `bytes`: totals; `languages`: by language `documents`, `bytes`,
    `pieces` and `occurrences`; `sizes`: bytes by (language, source); `sample`: what was left out, if anything."""

    path: str
    fingerprint: str
    corpus: str
    documents: int
    bytes: int
    languages: dict[str, dict[str, int]]
    sizes: dict[Group, int]
    shards: list[Shard]
    sample: dict[str, Any] = field(default_factory=dict)


def count_corpus(
    engine: Engine,
    corpus_folder: str,
    run_folder: str,
    patterns: Patterns = BLOOM,
    sampling: AnySampling = _EVERYTHING,
) -> CorpusCounts:
    """Count the pieces of a corpus or of a sample of it, by language and source, into RUN_FOLDER/counts.parquet.

    Shards that were counted before are not read again. Raises StaleDataError if the corpus is unfinished or its
    files are not those of its manifest (the content of a file is compared when it is counted), EmptyOutputError
    if it holds no text.
    """
    return follow(partial(_count, corpus_folder, run_folder, patterns, sampling), engine, _ROUNDS)


def _count(
    corpus_folder: str, run_folder: str, patterns: Patterns, sampling: AnySampling, engine: Engine
) -> CorpusCounts:
    """The plan of it: all tasks, and what comes of them."""
    corpus = read_manifest(corpus_folder, made_by="python -m roots_pipeline run")
    check_files(corpus_folder, corpus)
    work = join(run_folder, ".work", "counts")
    shards, sample = _shards(corpus, corpus_folder), dict[str, Any]()
    if sampling.draws:
        place = join(run_folder, ".work", "sample")
        shards, sample = draw_sample(engine, shards, sampling, _code_sources(corpus), place)
    tasks = [_count_task(shard, patterns, work) for shard in shards]
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
        for name, sources in result["groups"].items():
            totals = languages.setdefault(name, {"documents": 0, "bytes": 0, "pieces": 0, "occurrences": 0})
            for facts in sources.values():
                totals["documents"] += facts["documents"]
                totals["bytes"] += facts["bytes"]
    for name, facts in merged["languages"].items():
        languages[name].update(facts)
    return CorpusCounts(
        join(run_folder, COUNTS), merging.fingerprint, corpus.fingerprint,
        sum(result["documents"] for result in results), sum(result["bytes"] for result in results),
        dict(sorted(languages.items())), sizes_of(results), shards, sample,
    )  # fmt: skip


def _shards(corpus: Manifest, folder: str) -> list[Shard]:
    return [
        Shard(PurePosixPath(name).stem, join(folder, name), facts["xxh3"], facts["xxh3"])
        for name, facts in sorted(corpus.files.items())
        if name.startswith(_DOCUMENTS)
    ]


def _code_sources(corpus: Manifest) -> list[str]:
    return sorted(source["name"] for source in corpus.config.get("sources", []) if source.get("group") == "code")


def _count_task(shard: Shard, patterns: Patterns, work: str) -> Task:
    mark = fingerprint(["count", COUNT_VERSION, patterns, shard.mark])
    output = join(work, "shards", f"{shard.name}.parquet")
    arguments = {"documents": shard.path, "content": shard.content, "output": output, "patterns": patterns}
    return Task(f"count {shard.name}", join(work, "shards", f"{shard.name}.json"), mark, count_shard, arguments)


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
