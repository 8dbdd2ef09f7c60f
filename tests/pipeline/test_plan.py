"""What a plan counts is what a run does; what it predicts is in reason."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from roots_pipeline.__main__ import app
from roots_pipeline.config import CorpusRecipe, load_corpus_recipe, with_limit
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.plan import RunPlan, plan_corpus
from roots_pipeline.run import run_corpus
from tests.pipeline.test_run import digest, write_lines, write_recipe


class Noting(LocalEngine):
    def __init__(self) -> None:
        super().__init__(1)
        self.steps: list[tuple[str, int]] = []

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        self.steps.append((title, len(tasks)))
        return super().run(tasks, title)


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    """Two kinds of source in several shards, and stages with and without exchanges, some on one group only."""
    for number in range(5):
        texts = [f"line {line % 7} of many words that count " * (line % 5 + 1) for line in range(60)]
        write_lines(tmp_path / "in" / f"{number}.jsonl", texts, f"{number}-")
    pq.write_table(pa.table({"text": [f"row {row} of a table" * 30 for row in range(400)]}), tmp_path / "t.parquet")
    sources = [{"name": "lines", "kind": "jsonl", "path": str(tmp_path / "in")},
               {"name": "rows", "kind": "parquet", "path": str(tmp_path / "t.parquet"), "group": "books"}]
    stages = [{"stage": "massivetext"}, {"stage": "exact_duplicates", "groups": ["web"]},
              {"stage": "repeated_lines", "groups": ["web"]},
              {"stage": "thresholds", "preset": "", "limits": {"default": {"word_count": [20, None]}}}]
    return write_recipe(tmp_path, sources, stages, shard_size="20kB")


def plan_of(recipe: CorpusRecipe, folder: Path) -> RunPlan:
    return plan_corpus(recipe, str(folder), workers=2, seconds=0)


def run_of(recipe: CorpusRecipe, folder: Path) -> Noting:
    with Noting() as engine:
        run_corpus(recipe, str(folder), engine, Progress(quiet=True))
    return engine


def test_what_is_counted_is_what_a_run_does(tmp_path: Path, recipe: str) -> None:
    checked, out = load_corpus_recipe(recipe), tmp_path / "out"
    plan = plan_of(checked, out)
    assert not out.exists()
    sizes = [path.stat().st_size for path in sorted((tmp_path / "in").iterdir())]
    assert [(source.files, source.bytes) for source in plan.sources] == [
        (5, sum(sizes)), (1, (tmp_path / "t.parquet").stat().st_size)]
    engine = run_of(checked, out)
    assert [(step.title, step.tasks) for step in plan.steps] == engine.steps
    assert not any(step.reused for step in plan.steps)
    assert sum(source.documents or 0 for source in plan.sources) == 700  # the sample was all of it
    assert plan.prediction.cpu_seconds >= 0 and plan.prediction.stage_bytes > 0
    before = digest(out)

    again = plan_of(checked, out)
    assert [(step.title, step.tasks) for step in again.steps] == engine.steps
    assert all(step.reused == step.tasks for step in again.steps)

    Path(recipe).write_text(Path(recipe).read_text().replace("- 20\n", "- 21\n"))
    changed = load_corpus_recipe(recipe)
    plan = plan_of(changed, out)
    assert digest(out) == before  # a plan changes nothing
    assert sum(step.tasks - step.reused for step in plan.steps) == run_of(changed, out).tasks_run > 0


def test_the_records_of_evaluation_sets_are_a_task_more(tmp_path: Path, recipe: str) -> None:
    write_lines(tmp_path / "set.jsonl", ["where do the old herons sleep in the long winter"], "q")
    stage = {"stage": "decontaminate", "evaluations": [{"name": "herons", "path": str(tmp_path / "set.jsonl")}]}
    value = yaml.safe_load(Path(recipe).read_text())
    value["corpus"]["stages"].insert(1, stage)
    Path(recipe).write_text(yaml.safe_dump(value))
    checked, out = load_corpus_recipe(recipe), tmp_path / "out"
    plan = plan_of(checked, out)
    engine = run_of(checked, out)
    assert [(step.title, step.tasks) for step in plan.steps] == engine.steps
    again = plan_of(checked, out)
    assert all(step.reused == step.tasks for step in again.steps)


def test_a_run_that_was_stopped(tmp_path: Path, recipe: str) -> None:
    checked, out = load_corpus_recipe(recipe), tmp_path / "out"
    run_of(checked, out)
    os.unlink(next((out / ".work" / "0-read").glob("rows-*.json")))
    for folder in ("0-judge", "write"):
        for path in (out / ".work" / folder).iterdir():
            path.unlink()
    plan = plan_of(checked, out)
    assert [step.tasks - step.reused for step in plan.steps[:2]] == [0, 1]  # all inputs are hashed, one is not read
    assert (plan.steps[2].reused, plan.steps[-1].reused) == (0, 0)


def test_large_inputs_are_not_read_whole(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(1000)]
    texts = [" ".join(words[(7 * line * place) % 1000] for place in range(80)) for line in range(12000)]
    write_lines(tmp_path / "in" / "a.jsonl", texts)
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in")}
    recipe = load_corpus_recipe(write_recipe(tmp_path, [source], [{"stage": "exact_duplicates"}], shard_size="2MB"))
    plan = plan_of(recipe, tmp_path / "out")
    size = (tmp_path / "in" / "a.jsonl").stat().st_size
    assert plan.prediction.sample_bytes < size / 4
    assert plan.sources[0].shards == size // 2_000_000
    assert plan.sources[0].documents == pytest.approx(12000, rel=0.1)
    engine = run_of(recipe, tmp_path / "out")
    assert [(step.title, step.tasks) for step in plan.steps] == engine.steps
    work = sum(path.stat().st_size for path in (tmp_path / "out" / ".work").rglob("*") if path.is_file())
    assert work / 2 < plan.prediction.stage_bytes < 2 * work
    limited = plan_of(with_limit(recipe, 100), tmp_path / "few")
    assert limited.sources[0].shards == 1
    assert limited.prediction.stage_bytes < plan.prediction.stage_bytes


def test_the_command(tmp_path: Path, recipe: str) -> None:
    words = ["plan", "--recipe", recipe, "--run", str(tmp_path / "run"), "--seconds", "0", "--workers", "2"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "resolve exact_duplicates" in shown.output and "CPU time" in shown.output
    told = orjson.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert told["workers"] == 2 and told["sources"][0]["files"] == 5


def test_sources_that_find_their_own_files_are_sampled_by_documents(tmp_path: Path) -> None:
    table = pa.table({"text": [f"document {number} of a data set of the library" * 9 for number in range(3000)]})
    (tmp_path / "set").mkdir()
    pq.write_table(table, tmp_path / "set" / "train.parquet")
    source = {"name": "hub", "kind": "hf", "path": str(tmp_path / "set")}
    recipe = load_corpus_recipe(write_recipe(tmp_path, [source], [{"stage": "exact_duplicates"}]))
    plan = plan_of(recipe, tmp_path / "out")
    assert plan.sources[0].documents and 0 < plan.prediction.sample_bytes < 500_000
    assert plan.prediction.cpu_seconds < 60
    assert [(step.title, step.tasks) for step in plan.steps] == run_of(recipe, tmp_path / "out").steps


def test_a_missing_input_is_a_sentence(tmp_path: Path) -> None:
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "nowhere")}
    recipe = write_recipe(tmp_path, [source], [])
    shown = CliRunner().invoke(app, ["plan", "--recipe", recipe, "--run", str(tmp_path / "run")])
    assert "does not exist" in str(shown.exception)
