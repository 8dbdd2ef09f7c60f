"""The published chains of the catalogue cleaning: recipes and docs hold them, and they do what the original did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.stages import Exchange, Stage
from roots_pipeline.stage_table import make_stage
from tests.dedup import driver
from tests.rules.roots_golden import golden

RECIPES = ("roots_pseudo_crawl", "roots_plain", "roots_wiki")
# What the functions of a published chain are called here.
OURS: dict[str, dict[str, Any]] = {
    "dedup_document_on_url": {"stage": "url_duplicates", "key": "without_query"},
    "dedup_document": {"stage": "exact_duplicates", "ignore": "white_space_digits_punctuation"},
    "dedup_pseudocrawl_newspapers":
        {"stage": "repeated_lines", "minimum_characters": 0, "minimum_times": 2, "strip_lines": True},
    "dedup_template_soft":
        {"stage": "repeated_lines", "minimum_characters": 15, "minimum_times": 10, "strip_lines": True},
}


def entries_of(recipe: str) -> list[dict[str, Any]]:
    """The stages of a built-in recipe as it is written."""
    path = Path(__file__).resolve().parents[2] / "roots_pipeline" / "recipes" / f"{recipe}.yaml"
    stages: list[dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))["corpus"]["stages"]
    return stages


def stage_of(entry: dict[str, Any], as_published: bool = False) -> Stage:
    settings = {key: value for key, value in entry.items() if key != "stage"}
    stage = make_stage(entry["stage"], settings)
    if as_published and hasattr(stage, "as_published"):
        stage = make_stage(entry["stage"], {**settings, "as_published": True})
    return stage


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_load(recipe: str) -> None:
    assert [entry.stage for entry in load_corpus_recipe(recipe).stages] == [row["stage"] for row in entries_of(recipe)]


def test_docs_hold_the_recipes(project: Path) -> None:
    text = (project / "docs" / "rules.md").read_text("utf-8").split("### Published chains")[1].split("\n## ")[0]
    blocks = [block.split("```")[0] for block in text.split("```yaml\n")[1:]]
    assert [yaml.safe_load(block)["corpus"]["stages"] for block in blocks] == [entries_of(name) for name in RECIPES]


def test_all_stages_of_the_docs_exist(project: Path) -> None:
    blocks = (project / "docs" / "rules.md").read_text("utf-8").split("```yaml\n")[1:]
    for block in blocks:
        for entry in yaml.safe_load(block.split("```")[0]).get("corpus", {}).get("stages", []):
            make_stage(entry["stage"], {key: value for key, value in entry.items() if key not in ("stage", "groups")})


def test_golden_chains(shared: Path) -> None:
    rows = [row for row in golden(shared, "catalogue") if row["kind"] == "chain"]
    assert rows
    for row in rows:
        entries = [OURS.get(name, {"stage": name}) for name in row["function"]]
        published = [entry for entry in entries_of(recipe_of(row)) if not entry["stage"].startswith("split_")]
        if row["function"][-1] == published[-1]["stage"]:
            assert entries == published
        documents = [
            {"id": f"d{number:03d}", "text": text, "source": "s", "url": meta.get("url"), "metadata": json.dumps(meta)}
            for number, (text, meta) in enumerate(zip(row["input"], row["meta"], strict=True))
        ]
        for entry in entries:
            documents = after(stage_of(entry, as_published=True), documents)
        assert [document["text"] for document in documents if document["verdict"] is None] == row["output"], row["case"]


def recipe_of(row: dict[str, Any]) -> str:
    first = row["function"][0]
    return {"dedup_document_on_url": RECIPES[0], "dedup_document": RECIPES[1]}.get(first, RECIPES[2])


def after(stage: Stage, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The documents after a stage; those that were dropped stay among them."""
    if isinstance(stage, Exchange):
        return driver.run(stage, documents, shards=2, partitions=3, seed=1).rows
    rows: list[dict[str, Any]] = stage(make_batch(documents)).to_pylist()  # type: ignore[operator]
    return rows
