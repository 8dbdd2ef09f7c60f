"""The built-in recipes are valid, and the published ones run on a user's own sources."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from roots_pipeline.config import RECIPES, advice_on, load_corpus_recipe
from roots_pipeline.verify import verify_corpus
from tests.pipeline.test_run import rows, run


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.yaml")))
def test_built_in_recipes_are_valid(name: str) -> None:
    assert load_corpus_recipe(name).stages
    if name != "smoke":  # which has fewer sources than the recipe that it extends
        assert not [sentence for sentence in advice_on(load_corpus_recipe(name)) if "prefers" in sentence]


@pytest.mark.parametrize("name", ["roots", "massivetext"])
def test_published_recipes_run_on_other_sources(tmp_path: Path, sample: Path, name: str) -> None:
    built_in = yaml.safe_load((RECIPES / f"{name}.yaml").read_text())["corpus"]["stages"]
    for entry in built_in:
        if entry["stage"] == "decontaminate":
            entry["evaluations"] = [{"name": "reading", "path": str(sample / "eval" / "reading.jsonl")}]
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(yaml.safe_dump({"extends": name, "corpus": {
        "sources": [
            {"name": "web", "kind": "jsonl", "path": str(sample / "web" / "e[nsu].jsonl"),
             "language_from": "filename", "group": "web"},
            {"name": "press", "kind": "jsonl", "path": str(sample / "web" / "fr.jsonl"), "language": "fr",
             "group": "news"},
            {"name": "code", "kind": "code", "path": str(sample / "code" / "python"), "group": "code"},
        ],
        "stages": built_in,
    }}))
    run(str(recipe), tmp_path / "corpus")
    found = verify_corpus(str(tmp_path / "corpus"))
    assert found.problems == []
    kept = {row["source"] for row in rows(tmp_path / "corpus", "documents")}
    assert kept == {"web", "press", "code"}
    plants = {row["id"]: row["verdict"] for row in rows(tmp_path / "corpus", "rejected")}
    assert "en-p1" in plants, "the planted copy of en-004 stayed"
