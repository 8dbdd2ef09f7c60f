"""The tasks of a corpus run, step by step: what must be done to which file, whoever does it.

In: a checked recipe and the folder of the corpus. A schedule is followed by calling it with an engine. It can be sent
to another machine and followed there from the start again: what was done is told by the records of the tasks, so all
followers see the same tasks (see `core.replay`). What order the steps have is `pipeline`'s; what a task does is
`steps`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import xxhash

from roots_pipeline import __version__
from roots_pipeline.blocks import BlockFile
from roots_pipeline.columns import noticing_damage
from roots_pipeline.config import CorpusRecipe
from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.evaluation_records import NAME as EVALUATIONS
from roots_pipeline.core.stages import Exchange, Map
from roots_pipeline.core.storage import fingerprint, join, remove_file
from roots_pipeline.core.tasks import Engine, Task, finished_result
from roots_pipeline.decontamination.records import write_records
from roots_pipeline.decontamination.stage import Decontaminate
from roots_pipeline.inputs import hash_inputs, input_files
from roots_pipeline.pipeline import Phase, Placed, build_phases, maps_for
from roots_pipeline.removal import read_removal
from roots_pipeline.shards import Shard, plan_shards, work_path
from roots_pipeline.steps import (
    Findings,
    changed_columns,
    judge_shard,
    output_schema,
    publish_findings,
    read_shard,
    resolve_keys,
    write_shard,
)

# Libraries whose version can change what comes out.
_LIBRARIES = ("numpy", "pyarrow", "pycld2", "trafilatura")
# Keys are cut into slices of the key space, about one for so many bytes of input.
_SLICE_BYTES = 4 << 20
_MAXIMUM_SLICES = 4096
# When it is known how much each slice holds, neighbours are resolved together: an eighth of all, so that workers find
# work, but no less and no more than this, since each task costs some milliseconds, and its keys are held in memory.
_LEAST_RESOLVE_BYTES, _RESOLVE_BYTES = 2 << 20, 32 << 20
_MANY_RESOLVES = 8


@dataclass(slots=True)
class _State:
    """Where a shard stands: its stage files so far and the fingerprint of all that made them."""

    shard: Shard
    view: list[str]
    print: str


@dataclass(frozen=True, slots=True)
class _Found:
    """What an exchange found, for the shards it worked on; `contents` are the hashes of its files."""

    findings: Findings
    contents: tuple[str, ...]
    placed: Placed


@dataclass(frozen=True, slots=True)
class _Work:
    """What a step does to all shards of a group: maps, their settings as a hash, findings, the columns it writes."""

    maps: list[Map]
    settings: str
    findings: Findings | None
    contents: list[str]
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The shards, the hashes of their files by path, and what tasks said of reading, writing and publishing."""

    shards: list[Shard]
    hashes: dict[str, str]
    read: list[dict[str, Any]]
    written: list[dict[str, Any]]
    published: list[dict[str, Any]]


class Schedule:
    """The schedule of one run. Raises SourceError where an input is missing.

    `looking`: it is only looked at what would be done; nothing in the folder changes.
    """

    def __init__(self, recipe: CorpusRecipe, folder: str, *, looking: bool = False) -> None:
        self.recipe, self.folder, self._looking = recipe, folder, looking
        self.phases = build_phases(recipe)
        self.shards = plan_shards(recipe)
        self.files = input_files(self.shards)
        self.code = code_fingerprint()
        wanted = sum(shard.size for shard in self.shards) // _SLICE_BYTES
        self.slices = min(_MAXIMUM_SLICES, 1 << wanted.bit_length())  # in steps: more input seldom changes it

    @property
    def rounds(self) -> int:
        """How often tasks wait for the results of others, at most."""
        return 3 + sum(1 + 3 * (phase.exchange is not None) for phase in self.phases)

    def __call__(self, engine: Engine) -> Outcome:
        """Have all tasks done. Raises SourceError for too many bad records, and what the engine and tasks raise."""
        shards, hashes = hash_inputs(engine, self.shards, self.files, self.folder)
        states, read, published = self._read(engine, shards, hashes)
        self._check_bad(read)
        found: _Found | None = None
        for number, phase in enumerate(self.phases):
            if number > 0 and phase.measures:
                states, _ = self._judge(engine, f"{number}-measure", states, found, phase.measures, None)
                found = None
            if phase.exchange is not None:
                states, keys = self._judge(engine, f"{number}-judge", states, found, phase.judges, phase.exchange)
                found = self._resolve(engine, f"{number}-resolve", states, keys, phase.exchange)
                published += self._publish(engine, number, found)
        written = self._write(engine, states, found, self.phases[-1])
        return Outcome(shards, hashes, read, written, published)

    def _work(self, placed: Sequence[Placed], found: _Found | None) -> dict[str, _Work]:
        """The work of each group. Found once a step, since settings may hold long lists of words."""
        work = {}
        for group in sorted({shard.source.group for shard in self.shards}):
            maps = maps_for(placed, group)
            findings, contents = _found_for(found, group)
            settings = fingerprint([stage.parameters() for stage in maps])
            work[group] = _Work(maps, settings, findings, contents, frozenset(changed_columns(findings, maps)))
        return work

    def _read(self, engine: Engine, shards: Sequence[Shard],
              hashes: dict[str, str]) -> tuple[list[_State], list[dict[str, Any]], list[dict[str, Any]]]:
        """The states of all shards and the results of reading them; and what was published beside them."""
        tasks, states, work = [], [], self._work(self.phases[0].measures, None)
        for shard in shards:
            maps, reader = work[shard.source.group].maps, shard.source.reader
            output = work_path(self.folder, "0-read", f"{shard.name}.parquet")
            mark = fingerprint([
                self.code, reader.name, asdict(reader), work[shard.source.group].settings,
                [[file.path, hashes[file.path], asdict(file.part) if file.part else None]
                 for file in shard.files], shard.limit,
            ])
            arguments = {
                "reader": reader, "files": shard.files, "limit": shard.limit, "maps": maps, "output": output,
                "quarantine": join(self.folder, "quarantine", f"{shard.name}.parquet"),
            }
            record = work_path(self.folder, "0-read", f"{shard.name}.json")
            tasks.append(Task(shard.name, record, mark, read_shard, arguments, shard.size))
            states.append(_State(shard, [output], mark))
        # In the same step, since a step more would cost a job on a cluster.
        results = engine.run([*tasks, *self._evaluations()], "read and measure")
        return states, results[: len(tasks)], results[len(tasks) :]

    def _evaluations(self) -> list[Task]:
        """The task that writes the records of evaluation sets, if there are any."""
        stages = [phase.exchange.stage for phase in self.phases if phase.exchange is not None]
        compared = [(stage.evaluations, stage.located) for stage in stages if isinstance(stage, Decontaminate)]
        if not compared:
            return []
        mark = fingerprint([self.code, [[*map(asdict, evaluations), content] for evaluations, content in compared]])
        arguments = {"stages": compared, "output": join(self.folder, EVALUATIONS)}
        record = work_path(self.folder, "publish", "evaluations.json")
        first = max(shard.size for shard in self.shards) + 1  # else one worker would be left with it at the end
        return [Task("evaluations", record, mark, write_records, arguments, first)]

    def _check_bad(self, read: Sequence[dict[str, Any]]) -> None:
        bad, rows = sum(result["bad"] for result in read), sum(result["rows"] for result in read)
        if bad and bad > self.recipe.maximum_bad_share * (bad + rows):
            first = next(result["first_bad"] for result in read if result["bad"])
            raise SourceError(
                f"{bad} of {bad + rows} records cannot be read, more than maximum_bad_share "
                f"({self.recipe.maximum_bad_share}) allows; the first: {first}.",
                where=join(self.folder, "quarantine"),
                hint="Name the field that holds the text in text_field, mend the input, or raise maximum_bad_share.",
            )

    def _judge(self, engine: Engine, step: str, states: Sequence[_State], found: _Found | None,
               placed: Sequence[Placed], ending: Placed | None) -> tuple[list[_State], list[dict[str, Any]]]:
        """The states after a step, and of each shard that takes part in the exchange its keys."""
        tasks: list[Task] = []
        after: list[_State] = []
        emitting: list[tuple[int, str, str]] = []
        work = self._work(placed, found)
        ends = ending.stage if ending is not None else None
        assert ends is None or isinstance(ends, Exchange)
        settings = fingerprint(ends.parameters()) if ends else None
        for state in states:
            own = work[state.shard.source.group]
            exchange = ends if ending is not None and ending.works_on(state.shard.source.group) else None
            if not own.changed and exchange is None:
                after.append(state)
                continue
            output = work_path(self.folder, step, f"{state.shard.name}.parquet") if own.changed else None
            slices = (exchange.partitions if exchange else None) or self.slices
            mark = fingerprint([
                state.print, own.contents, own.settings, settings if exchange else None, slices, state.shard.number,
            ])
            keys = work_path(self.folder, step, f"{state.shard.name}.keys")
            arguments = {
                "view": list(state.view), "shard": state.shard.number, "findings": own.findings, "maps": own.maps,
                "exchange": exchange, "slices": slices, "output": output, "keys": keys,
            }
            record = work_path(self.folder, step, f"{state.shard.name}.json")
            if exchange is not None:
                emitting.append((len(tasks), keys, mark))
            tasks.append(Task(state.shard.name, record, mark, judge_shard, arguments, state.shard.size))
            after.append(_State(state.shard, [*state.view, *([output] if output else [])], mark))
        results = engine.run(tasks, step.partition("-")[2])
        return after, [{"path": path, "print": mark, "bytes": results[at]["slices"]} for at, path, mark in emitting]

    def _resolve(self, engine: Engine, step: str, states: Sequence[_State], keys: Sequence[dict[str, Any]],
                 ending: Placed) -> _Found | None:
        exchange = ending.stage
        assert isinstance(exchange, Exchange)
        if not keys:
            return None
        paths = [entry["path"] for entry in keys]
        tasks, outputs = [], []
        for number, (begin, end) in enumerate(_ranges([entry["bytes"] for entry in keys])):
            output = work_path(self.folder, step, f"{number:04d}.found")
            mark = fingerprint([[entry["print"] for entry in keys], exchange.parameters(), begin, end])
            arguments = {"exchange": exchange, "keys": paths, "slices": (begin, end), "output": output}
            record = work_path(self.folder, step, f"{number:04d}.json")
            tasks.append(Task(f"{exchange.name} {number}", record, mark, resolve_keys, arguments))
            outputs.append(output)
        results = engine.run(tasks, f"resolve {exchange.name}")
        contents = tuple(result["findings"] for result in results)
        return _Found(Findings(exchange, tuple(outputs)), contents, ending)

    def _publish(self, engine: Engine, number: int, found: _Found | None) -> list[dict[str, Any]]:
        """Write the pairs of a deduplicating exchange to `pairs/`."""
        if found is None:
            return []
        exchange, tasks = found.findings.exchange, []
        for part, (path, content) in enumerate(zip(found.findings.paths, found.contents, strict=True)):
            with noticing_damage(path), BlockFile(path) as file:
                schema = file.schema
            if exchange.published(schema.empty_table()) is not None:
                name = f"{number:02d}-{part:04d}"
                arguments = {"exchange": exchange, "findings": path,
                             "output": join(self.folder, "pairs", f"{name}.parquet")}
                record = work_path(self.folder, "publish", f"{name}.json")
                mark = fingerprint([self.code, content, exchange.parameters()])
                tasks.append(Task(name, record, mark, publish_findings, arguments))
        return engine.run(tasks, "publish") if tasks else []

    def _write(self, engine: Engine, states: Sequence[_State], found: _Found | None,
               phase: Phase) -> list[dict[str, Any]]:
        work = self._work(phase.judges, found)
        schema = output_schema([
            [stage for part in self.phases for stage in maps_for([*part.measures, *part.judges], group)]
            for group in work
        ])
        columns, removal = str(schema), read_removal(self.folder)
        tasks = []
        for state in states:
            own = work[state.shard.source.group]
            mark = fingerprint([
                state.print, own.contents, own.settings, columns, self.recipe.rejected_text,
                *([asdict(removal)] if removal else []),
            ])
            arguments = {
                "view": list(state.view), "shard": state.shard.number, "findings": own.findings, "maps": own.maps,
                "schema": schema, "rejected_text": self.recipe.rejected_text, "removal": removal,
                "documents": join(self.folder, "documents", f"{state.shard.name}.parquet"),
                "rejected": join(self.folder, "rejected", f"{state.shard.name}.parquet"),
            }
            record = work_path(self.folder, "write", f"{state.shard.name}.json")
            tasks.append(Task(state.shard.name, record, mark, write_shard, arguments, state.shard.size))
        if not self._looking and any(finished_result(task) is None for task in tasks):
            remove_file(join(self.folder, "manifest.json"))  # until the end, this folder is not a finished corpus
        return engine.run(tasks, "write")


def _found_for(found: _Found | None, group: str) -> tuple[Findings | None, list[str]]:
    """The findings of the exchange before for shards of a group, if it worked on that group."""
    if found is None or not found.placed.works_on(group):
        return None, []
    return found.findings, list(found.contents)


def _ranges(sizes: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Neighbouring slices to be resolved together; `sizes` are the bytes of each slice, for each shard."""
    ranges, begin, held = [], 0, 0
    totals = [sum(of_shards) for of_shards in zip(*sizes, strict=True)]
    most = resolve_bytes(sum(totals))
    for number, size in enumerate(totals):
        if number > begin and held + size > most:
            ranges.append((begin, number))
            begin, held = number, 0
        held += size
    return [*ranges, (begin, len(totals))]


def resolve_bytes(total: int) -> int:
    """Bytes of keys that are resolved together, of so many in all."""
    return min(_RESOLVE_BYTES, max(_LEAST_RESOLVE_BYTES, total // _MANY_RESOLVES))


def code_fingerprint() -> str:
    """Hash of the code that decides what documents look like, and of the libraries it leans on."""
    root = Path(__file__).parent
    digest = xxhash.xxh3_128(__version__)
    for path in sorted(root.rglob("*.py")):
        part = path.relative_to(root).parts[0]
        if part not in ("sample", "report", "explorer", "engines", "__main__.py"):
            digest.update(path.read_bytes())
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}")
    return digest.hexdigest()
