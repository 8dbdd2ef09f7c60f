"""The JSON schema of recipes: what we ship is valid, what a loader refuses is not, and the reference is current."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mixtures.config import MixtureRecipe, load_mixture_recipe
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import RootbloomError
from roots_pipeline.core.recipe import PACKAGES, load_section
from roots_pipeline.core.reference import as_markdown
from roots_pipeline.core.schema import add_section, describe, field_notes
from roots_pipeline.core.storage import read_json
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.recipe_schema import corpus_schema
from tests.plain_schema import problems
from tokenizer.config import TokenizerRecipe, load_tokenizer_recipe
from train.config import RECIPES, TrainConfig
from train.recipe_schema import train_schema

ROOT = Path(__file__).parents[2]
BUILT_IN = sorted(path for package in PACKAGES for path in (ROOT / package / "recipes").glob("*.yaml"))
GUIDES = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("schema") / "recipe.json"
    for name, body in (("corpus", corpus_schema()), ("tokenizer", describe(TokenizerRecipe)),
                       ("mixture", describe(MixtureRecipe)), ("train", train_schema())):
        add_section(str(path), name, body)
    value: dict[str, Any] = read_json(str(path))
    return value


@pytest.mark.parametrize("path", BUILT_IN, ids=[f"{path.parent.parent.name}-{path.stem}" for path in BUILT_IN])
def test_every_recipe_that_ships_is_valid(schema: dict[str, Any], path: Path) -> None:
    assert list(problems(yaml.safe_load(path.read_text("utf-8")), schema)) == []


def test_recipes_in_guides_are_valid(schema: dict[str, Any]) -> None:
    blocks = [part.partition("```")[0] for path in GUIDES for part in path.read_text("utf-8").split("```yaml\n")[1:]]
    recipes = [value for value in map(yaml.safe_load, blocks)
               if isinstance(value, dict) and value.keys() <= schema["properties"].keys()]
    assert len(recipes) > 5
    for recipe in recipes:
        assert list(problems(recipe, schema)) == [], recipe


SOURCE = {"name": "s", "kind": "jsonl", "path": "x.jsonl"}
WRONG: list[dict[str, Any]] = [
    {"corpus": {"sources": [{**SOURCE, "kind": "jsonlines"}]}}, {"corpus": {"sources": [{**SOURCE, "text": "a"}]}},
    {"corpus": {"sources": [{"name": "s", "kind": "jsonl"}]}}, {"corpus": {"sources": []}},
    {"corpus": {"stages": [{"stage": "massivetex"}]}}, {"corpus": {"stages": [{"stage": "massivetext", "words": 3}]}},
    {"corpus": {"stages": [{"stage": "near_duplicates", "threshold": "high"}]}},
    {"corpus": {"rejected_text": "all"}}, {"corpus": {"maximum_bad_share": 2}}, {"corpus": {"shards": 3}},
    {"corpora": {}}, {"tokenizer": {"vocab_size": "big"}}, {"tokenizer": {"pretokenizer": "bert"}},
    {"mixture": {"weights": {"rule": "temperature"}}}, {"mixture": {"split": {"method": "hash", "share": 1}}},
    {"train": {"precision": "int8"}}, {"train": {"model": {"hidden": 8}}}, {"train": {"lr": 0}},
    {"train": {"operations": {"spikes": {"action": "panic"}}}},
]


@pytest.mark.parametrize("recipe", WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_wrong_recipes_are_refused_by_schema_and_loader(
    schema: dict[str, Any], recipe: dict[str, Any], tmp_path: Path
) -> None:
    assert list(problems(recipe, schema))
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(recipe))
    load = {"corpus": load_corpus_recipe, "tokenizer": load_tokenizer_recipe, "mixture": load_mixture_recipe}.get(
        next(iter(recipe)), lambda name: load_section(name, "train", TrainConfig, RECIPES))
    with pytest.raises(RootbloomError):
        load(str(path))


def test_a_library_agrees(schema: dict[str, Any]) -> None:
    library = pytest.importorskip("jsonschema")
    library.Draft202012Validator.check_schema(schema)
    validator = library.Draft202012Validator(schema)
    for path in BUILT_IN:
        assert validator.is_valid(yaml.safe_load(path.read_text("utf-8"))), path
    assert not any(validator.is_valid(copy.deepcopy(recipe)) for recipe in WRONG)


def test_the_reference_is_current(schema: dict[str, Any]) -> None:
    """`make docs` writes both anew."""
    assert read_json(str(ROOT / "docs" / "recipe.schema.json")) == schema, "run `make docs`"
    assert (ROOT / "docs" / "recipes.md").read_text("utf-8") == as_markdown(schema), "run `make docs`"


def test_notes_come_from_docstrings_and_comments() -> None:
    assert field_notes(ExactDuplicates)["ignore"] == "characters that do not count"
    assert field_notes(ExactDuplicates)["measure"].endswith("least first; then the smallest id")
    notes = field_notes(TokenizerRecipe)
    assert notes["reserved"] == "ids at the end that no text can produce"
    assert notes["max_token_length"] == "Bytes; tokens of three bytes or more are shorter than this."


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1]")
    with pytest.raises(RootbloomError, match="no schema of recipes"):
        add_section(str(path), "train", {})
    assert path.read_text() == "[1]"


def test_the_command_prints_the_section() -> None:
    done = subprocess.run([sys.executable, "-m", "mixtures", "schema"], cwd=ROOT, capture_output=True, check=True)
    value = yaml.safe_load(done.stdout)
    assert value["properties"]["mixture"]["properties"]["seed"]["type"] == "integer"
    assert value["properties"]["train"] == {"type": ["object", "null"]}
