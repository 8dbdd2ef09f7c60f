"""The first documents of each source, and nothing else of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from roots_pipeline.config import load_corpus_recipe, with_limit
from roots_pipeline.core.progress import Progress
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from tests.pipeline.test_run import digest, many, rows, run, write_lines, write_recipe

__all__ = ["many"]  # a fixture


@pytest.mark.parametrize("limit", [1, 39, 40, 41, 95, 1000])
def test_the_first_documents_are_taken(tmp_path: Path, many: str, limit: int) -> None:
    text = Path(many).read_text().replace("stages:", "stages: []\n  unused:").split("  unused:")[0]
    Path(many).write_text(text)
    whole = load_corpus_recipe(many)
    with LocalEngine(1) as engine:
        manifest = run_corpus(with_limit(whole, limit), str(tmp_path / "few"), engine, Progress(quiet=True))
        run_corpus(whole, str(tmp_path / "all"), engine, Progress(quiet=True))
    few, every = ([row["id"] for row in rows(tmp_path / name, "documents")] for name in ("few", "all"))
    assert few == every[:limit] and len(every) == 240
    assert manifest.config["sources"][0]["limit"] == limit
    assert len(manifest.inputs) == min(6, -(-limit // 40))


def test_a_limited_run_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", [f"one two three {number}" for number in range(50)])
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")}
    recipe = load_corpus_recipe(write_recipe(tmp_path, [source], [{"stage": "exact_duplicates"}]))
    with LocalEngine(1) as engine:
        for limit in (7, 50, 7):
            run_corpus(with_limit(recipe, limit), str(tmp_path / "out"), engine, Progress(quiet=True))
            assert len(rows(tmp_path / "out", "documents")) == limit
    run(str(tmp_path / "recipe.yaml"), tmp_path / "out")
    run(str(tmp_path / "recipe.yaml"), tmp_path / "fresh")
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")
