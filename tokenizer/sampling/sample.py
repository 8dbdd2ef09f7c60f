"""The sample as a corpus of its own: tasks for any engine, from the shards of a corpus to the shards to count.

    measure ─▶ ratios ─▶ line keys ─▶ repeated lines ─▶ article keys ─▶ repeated articles ─▶ write

Each arrow is a round of tasks that do not depend on each other; memory holds one shard's keys or one partition of all
keys. A sample that was made before is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import EmptyOutputError
from roots_pipeline.core.storage import fingerprint, join
from roots_pipeline.core.tasks import Commit, Engine, Task
from tokenizer.content import REMAKE_DOCUMENTS, check_content
from tokenizer.count import Totals, groups_of, read_documents
from tokenizer.counts_file import Group
from tokenizer.sampling import rules
from tokenizer.sampling.config import AnySampling, Bloom, Explicit, Mixture
from tokenizer.sampling.draw import Draw, write_article_keys, write_line_keys, write_sample
from tokenizer.sampling.first_of_equals import find_later, partitions_for
from tokenizer.sampling.mixture import shares_of_mixture

_VERSION = 1  # raise it when the same text would give another sample


@dataclass(frozen=True, slots=True)
class Shard:
    """Documents to count. `content`: xxh3-128 of the file, None for our own; `mark`: fingerprint of what decides it."""

    name: str
    path: str
    content: str | None
    mark: str


def group_ratios(sampling: AnySampling, sizes: Mapping[Group, int]) -> dict[Group, float]:
    """What part of each group the rule wants, of a corpus with these bytes. Raises TokenizerError.

    With a budget at most 1; without one, the ratio of a group's share to the share it would have by its size.
    """
    budget = float(sampling.budget) if sampling.budget is not None else float(sum(sizes.values()))
    if isinstance(sampling, Bloom):
        filled_to = float(sampling.filled_to) if sampling.filled_to is not None else None
        wanted = rules.bloom(sizes, budget, sampling.alpha, filled_to, repeat=sampling.budget is None)
    elif isinstance(sampling, Explicit):
        shares_of = rules.explicit(sizes, sampling.weights, leave_out=sampling.unmatched == "leave_out")
        wanted = {group: share * budget for group, share in shares_of.items()}
    elif isinstance(sampling, Mixture) and sampling.weights is not None:
        wanted = {group: share * budget for group, share in shares_of_mixture(sizes, sampling.weights).items()}
    else:
        wanted = rules.proportional(sizes, budget)
    return rules.ratios(sizes, wanted, repeat=sampling.budget is None)


def sizes_of(results: Sequence[Mapping[str, Any]]) -> dict[Group, int]:
    """Bytes by group of all results of `Totals.facts`."""
    sizes: dict[Group, int] = {}
    for result in results:
        for language, sources in result["groups"].items():
            for source, facts in sources.items():
                sizes[language, source] = sizes.get((language, source), 0) + facts["bytes"]
    return sizes


def draw_sample(
    engine: Engine, shards: Sequence[Shard], sampling: AnySampling, exempt: Sequence[str], work: str
) -> tuple[list[Shard], dict[str, Any]]:
    """Draw and deduplicate; returns the shards of the sample, in `work`, and facts for the manifest.

    `exempt`: sources whose lines are never dropped. Raises EmptyOutputError if the corpus holds no text.
    """
    sizes = sizes_of(engine.run([_measure_task(shard, work) for shard in shards], "measure text"))
    if not sum(sizes.values()):
        raise EmptyOutputError("the corpus holds no text to draw from.", hint="Look at its report for what was lost.")
    drawn = sampling.apply == "documents"
    ratios = group_ratios(sampling, sizes) if drawn else dict.fromkeys(sizes, 1.0)
    text = sum(size * ratios[group] for group, size in sizes.items())
    draws = [Draw(shard.path, shard.content, number, sampling.seed, ratios, exempt)
             for number, shard in enumerate(shards)]  # fmt: skip
    facts: dict[str, Any] = {"bytes_before": sum(sizes.values())}
    rounds = _Rounds(engine, shards, work, fingerprint([
        _VERSION, sampling.seed, sorted((*group, ratio) for group, ratio in ratios.items()), sorted(exempt),
        [shard.mark for shard in shards], sampling.deduplicate_lines, sampling.deduplicate_documents,
    ]), partitions_for(int(text)))  # fmt: skip
    if sampling.deduplicate_lines:
        files, facts["lines"], facts["repeated_lines"] = rounds.find("lines", write_line_keys, draws)
        draws = [replace(draw, lines=files) for draw in draws]
    if sampling.deduplicate_documents:
        files, facts["articles"], facts["repeated_articles"] = rounds.find("articles", write_article_keys, draws)
        draws = [replace(draw, articles=files) for draw in draws]
    written, results = rounds.write(draws)
    facts |= {name: sum(result[name] for result in results) for name in ("documents", "bytes")}
    return written, facts


def measure_shard(commit: Commit, documents: str, content: str | None) -> dict[str, Any]:
    """Task: documents and bytes by group; it writes nothing but its record."""
    if content is not None:
        check_content(documents, content, REMAKE_DOCUMENTS)
    totals = Totals()
    for batch in read_documents(documents):
        totals.add(*groups_of(batch), text_buffers(batch.column("text"))[1])
    return totals.facts()


def _measure_task(shard: Shard, work: str) -> Task:
    mark = fingerprint(["measure", _VERSION, shard.mark])
    arguments = {"documents": shard.path, "content": shard.content}
    return Task(f"measure {shard.name}", join(work, "measure", f"{shard.name}.json"), mark, measure_shard, arguments)


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The rounds of one sample; `mark` covers all that decides it."""

    engine: Engine
    shards: Sequence[Shard]
    work: str
    mark: str
    partitions: int

    def find(
        self, kind: str, function: Callable[..., dict[str, Any]], draws: Sequence[Draw]
    ) -> tuple[list[str], int, int]:
        """Files that tell what was repeated, how many keys there were, how many of them were repeated."""
        keys = [join(self.work, kind, "keys", f"{shard.name}.arrow") for shard in self.shards]
        tasks = [
            self._task(kind, f"keys of {shard.name}", function, path,
                       {"draw": draw, "partitions": self.partitions, "output": path})
            for shard, draw, path in zip(self.shards, draws, keys, strict=True)
        ]  # fmt: skip
        self.engine.run(tasks, f"hash {kind}")
        outputs = [join(self.work, kind, "repeated", f"{number:05d}.arrow") for number in range(self.partitions)]
        tasks = [
            self._task(kind, f"partition {number}", find_later, path,
                       {"inputs": keys, "partition": number, "output": path})
            for number, path in enumerate(outputs)
        ]  # fmt: skip
        results = self.engine.run(tasks, f"find repeated {kind}")
        return outputs, sum(result["keys"] for result in results), sum(result["later"] for result in results)

    def write(self, draws: Sequence[Draw]) -> tuple[list[Shard], list[dict[str, Any]]]:
        paths = [join(self.work, "documents", f"{shard.name}.parquet") for shard in self.shards]
        tasks = [
            self._task("documents", shard.name, write_sample, path, {"draw": draw, "output": path})
            for shard, draw, path in zip(self.shards, draws, paths, strict=True)
        ]
        results = self.engine.run(tasks, "write the sample")
        written = [
            Shard(shard.name, path, None, fingerprint(["sample", self.mark, shard.name]))
            for shard, path in zip(self.shards, paths, strict=True)
        ]
        return written, results

    def _task(
        self, kind: str, name: str, function: Callable[..., dict[str, Any]], output: str, arguments: dict[str, Any]
    ) -> Task:
        mark = fingerprint([kind, name, self.mark])
        return Task(f"{kind}: {name}", f"{output}.json", mark, function, arguments)
