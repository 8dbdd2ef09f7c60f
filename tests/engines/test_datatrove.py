"""datatrove: our rules in its pipelines, our tasks in its executors, and what its own engine would not survive."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import EngineError, RecipeError, SourceError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.replay import Replay
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.datatrove import DatatroveEngine, RunTasks
from roots_pipeline.engines.datatrove_filter import RootbloomFilter
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from roots_pipeline.stage_table import make_stage
from tests.engines.test_beam import SumOfSquares
from tests.engines.test_local import complain, die, tasks

RECIPE = """
corpus:
  sources: [{name: web, kind: jsonl, path: package://sample/web/en.jsonl, language: en}]
  stages: [{stage: massivetext}, {stage: thresholds}]
  rejected_text: full
"""


def test_a_filter_gives_the_verdicts_of_a_run(tmp_path: Path, sample: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    checked = load_corpus_recipe(str(tmp_path / "recipe.yaml"))
    with LocalEngine(1) as engine:
        run_corpus(checked, str(tmp_path / "run"), engine, Progress(quiet=True))
    ours = {part: pq.read_table(tmp_path / "run" / part) for part in ("documents", "rejected")}
    rules = RootbloomFilter(make_stage("massivetext", {}), make_stage("thresholds", {}), batch_size=7, measures=True,
                            exclusion_writer=JsonlWriter(str(tmp_path / "dropped"), compression=None))
    LocalPipelineExecutor([
        JsonlReader(str(sample / "web"), glob_pattern="en.jsonl", default_metadata={"language": "en"}),
        rules, JsonlWriter(str(tmp_path / "kept"), compression=None),
    ], logging_dir=str(tmp_path / "logs")).run()  # fmt: skip
    kept, dropped = ([orjson.loads(line) for path in sorted((tmp_path / name).iterdir())
                      for line in path.read_bytes().splitlines()] for name in ("kept", "dropped"))
    assert [row["text"] for row in kept] == ours["documents"].column("text").to_pylist()
    assert [row["metadata"]["filter_reason"] for row in dropped] == ours["rejected"].column("verdict").to_pylist()
    assert kept[0]["metadata"]["mean_word_length"] == ours["documents"].column("mean_word_length")[0].as_py()
    stats = orjson.loads((tmp_path / "logs" / "stats.json").read_bytes())[1]["stats"]
    assert stats["dropped"] == len(dropped) > 0


def test_a_filter_takes_what_a_pipeline_may_hold() -> None:
    rules = RootbloomFilter(make_stage("massivetext", {}))
    odd = [Document("", "1"), Document("half \ud83d of a pair", "2", metadata={"a": {1: "\udc00"}, "b": object()}),
           Document("a\x00b " * 50, "3", metadata={"language": None, "url": 5})]
    assert len(list(rules.run(iter(odd)))) + rules.stats["dropped"].total == 3
    assert list(rules.run(iter([]))) == []
    with pytest.raises(RecipeError, match="compares documents with each other"):
        RootbloomFilter(make_stage("exact_duplicates", {}))


def test_results_are_in_order_and_kept(tmp_path: Path) -> None:
    engine = DatatroveEngine(2)
    first = engine.run(tasks(tmp_path, 5), "squares")
    assert [result["square"] for result in first] == [0, 1, 4, 9, 16]
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert engine.run(tasks(tmp_path, 5), "squares") == first
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


def test_errors_and_deaths_end_a_run(tmp_path: Path) -> None:
    bad = [Task(f"t{n}", str(tmp_path / f"{n}.json"), "1", complain, {"number": n}) for n in range(2)]
    with pytest.raises(SourceError, match=r"^file-0: unreadable Mend it\.$"):
        DatatroveEngine(1).run(bad, "complaints")
    with pytest.raises(EngineError, match=r"a worker of datatrove died in step 'deaths' \(killed by SIGKILL"):
        DatatroveEngine(2).run([Task("k", str(tmp_path / "k.json"), "1", die), *tasks(tmp_path, 1)], "deaths")


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_chain_of_jobs_is_a_run(tmp_path: Path, ranks: int) -> None:
    """What docs/engines.md does with Slurm: one job a round, each of which waits for the one before."""
    plan = SumOfSquares(tmp_path / "work")
    before = None
    for number in range(2):
        before = LocalPipelineExecutor([RunTasks(plan)], tasks=ranks, workers=1, depends=before,
                                       logging_dir=str(tmp_path / "logs" / str(number)))
    assert before is not None
    before.run()
    assert plan(Replay()) == 900
