"""The dedup stages in whole runs: the same as by hand, whatever the shards; sums add up; mistakes are one sentence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from roots_pipeline import stage_table
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.stages import Exchange
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.lines import RepeatedLines
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.simhash import SimHashDuplicates
from roots_pipeline.dedup.substring import RepeatedPassages
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from tests.dedup import driver
from tests.dedup.driver import document

STAGES: list[Exchange] = [
    MinHashDuplicates(ngram=4, prefer=("better",)),
    SimHashDuplicates(prefer=("better",)),
    RepeatedPassages(60, prefer=("better",)),
    RepeatedLines(scope="corpus", keep="first", minimum_times=2, minimum_share=0.01, minimum_left=200,
                  prefer=("better",)),
    ExactDuplicates(ignore="white_space_digits_punctuation", measure="length", prefer=("better",)),
]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in STAGES:
        monkeypatch.setitem(stage_table.STAGES, stage.name, type(stage))


def corpus() -> list[dict[str, Any]]:
    """Texts of a few passages that recur, some in English, with a word exchanged here and there."""
    dice = random.Random(11)
    passages = [" ".join(f"w{dice.randrange(10**6)}" for _ in range(30)) for _ in range(10)]
    rows = []
    for number in range(90):
        words = "\n ".join(dice.sample(passages, dice.choice([1, 3, 4]))).split(" ")
        for _ in range(dice.randint(0, 3)):
            words[dice.randrange(len(words))] = f"new{dice.randrange(10**6)}"
        rows.append(document(f"d{number:02d}", " ".join(words), dice.choice(["a", "better"]), language="en"))
    return rows


def write_recipe(folder: Path, rows: list[dict[str, Any]], stages: list[dict[str, Any]], size: int | str) -> str:
    sources = []
    for name in ("a", "better"):
        mine = [row for row in rows if row["source"] == name]
        for part in range(3):
            path = folder / name / f"{part}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"\n".join(orjson.dumps({"id": row["id"], "text": row["text"]}) for row in mine[part::3]))
        sources.append({"name": name, "kind": "jsonl", "path": str(folder / name), "language": "en"})
    recipe = folder / "recipe.yaml"
    section = {"sources": sources, "stages": stages, "shard_size": size, "rejected_text": "full"}
    recipe.write_text(yaml.safe_dump({"corpus": section}))
    return str(recipe)


def run(recipe: str, folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The counts of a run, and all documents by id."""
    with LocalEngine(1) as engine:
        manifest = run_corpus(load_corpus_recipe(recipe), str(folder), engine, Progress(quiet=True))
    rows: dict[str, dict[str, Any]] = {}
    for part in ("documents", "rejected"):
        for path in sorted((folder / part).glob("*.parquet")):
            rows.update((row["id"], {"verdict": None, "cause": None, **row}) for row in pq.read_table(path).to_pylist())
    return manifest.counts, rows


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_run_does_what_its_rounds_do_by_hand(tmp_path: Path, stage: Exchange) -> None:
    rows = corpus()
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in stage.parameters().items()
                if name not in ("stage", "version")}
    entry = {"stage": stage.name, **settings}
    expected = {row["id"]: row for row in driver.run(stage, rows).rows}
    for size in (1, "1MB"):
        counts, found = run(write_recipe(tmp_path, rows, [entry], size), tmp_path / f"out{size}")
        assert counts["read"] == len(rows) == counts["kept"] + counts["rejected"] == len(found)
        assert 0 < counts["rejected"] < len(rows)
        for name, row in found.items():
            for column in ("text", "verdict", "cause", "cut_bytes"):
                assert row.get(column) == expected[name].get(column)
        if stage.name != "repeated_passages":
            assert all(found[row["cause"]]["verdict"] is None for row in found.values() if row["verdict"])


def test_impossible_settings_are_one_sentence(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, corpus(), [{"stage": "near_duplicates", "bands": 30}], 1)
    with pytest.raises(RecipeError, match="30 bands of 6 rows need 180 hashes"):
        load_corpus_recipe(recipe)
