"""Mistakes in a recipe are named with file, line and the nearest right word."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import load_section


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int = Field(default=1, ge=1)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid")
    vocab_size: int
    inner: Inner = Inner()
    parts: list[Inner] = []


@pytest.fixture
def built_in(tmp_path: Path) -> Path:
    folder = tmp_path / "tokenizer" / "recipes"
    folder.mkdir(parents=True)
    (folder / "sample.yaml").write_text("tokenizer:\n  vocab_size: 300\n  inner: {size: 5}\n")
    return folder


def load(folder: Path, text: str) -> Section:
    path = folder.parent / "mine.yaml"
    path.write_text(text)
    return load_section(str(path), "tokenizer", Section, folder)


def test_missing_keys_come_from_the_extended_recipe(built_in: Path) -> None:
    assert load_section("sample", "tokenizer", Section, built_in).vocab_size == 300
    merged = load(built_in, "tokenizer:\n  vocab_size: 400\n")
    assert (merged.vocab_size, merged.inner.size) == (400, 5)
    assert load(built_in, "corpus: {}\n").vocab_size == 300


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tokenizer:\n  vocab_sise: 3\n", ["mine.yaml:2", "'vocab_sise'", "Did you mean 'vocab_size'?"]),
        ("tokenizer:\n  inner:\n    siez: 3\n", ["mine.yaml:3", "'siez'", "tokenizer.inner", "'size'"]),
        ("tokenizer:\n  parts:\n  - size: 1\n  - size: 0\n", ["mine.yaml:4", "parts.1.size", "found 0"]),
        ("tokeniser: {}\n", ["mine.yaml:1", "unknown section 'tokeniser'", "'tokenizer'"]),
        ("tokenizer:\n  vocab_size: many\n", ["mine.yaml:2", "vocab_size", "'many'"]),
        ("tokenizer:\n  vocab_size: 1\n  vocab_size: 2\n", ["mine.yaml:3", "given twice"]),
        ("tokenizer: [\n", ["mine.yaml:", "cannot be read as YAML"]),
        ("tokenizer:\n\tvocab_size: 1\n", ["mine.yaml:2", "with spaces"]),
        ("tokenizer: *.json\n", ["mine.yaml:1", "needs quotes"]),
        ("tokenizer: %a\n", ["mine.yaml:1", "needs quotes"]),
        ("tokenizer: a: b\n", ["mine.yaml:1", "needs quotes"]),
        ("tokenizer:\n  parts:\n  - size: 1\n vocab_size: 1\n", ["mine.yaml:4", "indentation"]),
        ("tokenizer: {parts: [{size: 1}\n", ["mine.yaml:", "not closed"]),
        ('tokenizer: {vocab_size: "C:\\data"}\n', ["mine.yaml:1", "single quotes"]),
        ('tokenizer: {vocab_size: "1}\n', ["mine.yaml:", "A quote is not closed"]),
        ("tokenizer:\n  parts:\n    size: 1\n", ["mine.yaml:2", "begin each entry with `- `"]),
        ("- a\n", ["must hold sections"]),
        ("tokenizer: 3\n", ["must hold keys"]),
        ("tokenizer: []\n", ["must hold keys"]),
        ("", ["this recipe is empty"]),
        ("a: &a [1]\nb: [*a, *a]\n", ["anchors and aliases"]),
        ("tokenizer: &a {inner: *a}\n", ["anchors and aliases"]),
        ("[" * 3000 + "]" * 3000, ["nested too deeply"]),
        ("extends: nowhere\n", ["no built-in recipe 'nowhere'", "sample"]),
        ("extends: mine.yaml\n", ["there is no such recipe file"]),
        ("tokenizer: !!python/object/apply:os.system ['true']\n", ["cannot be read as YAML"]),
    ],
)
def test_mistakes_are_named(built_in: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        load(built_in, text)
    for part in parts:
        assert part in str(caught.value)


def test_a_circle_of_extends_is_named(built_in: Path) -> None:
    path = built_in.parent / "mine.yaml"
    with pytest.raises(RecipeError, match="circle"):
        load(built_in, f"extends: {path}\n")


def test_a_name_that_only_another_package_knows_means_what_it_extends(built_in: Path) -> None:
    other = built_in.parent.parent / "train" / "recipes"
    other.mkdir(parents=True, exist_ok=True)
    (other / "large.yaml").write_text("train: {hidden: 7}\n")
    assert load_section("large", "tokenizer", Section, built_in).vocab_size == 300


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_names_that_no_file_can_have(built_in: Path, name: str) -> None:
    with pytest.raises(RecipeError, match="no name and no path"):
        load_section(name, "tokenizer", Section, built_in)


def test_a_file_of_a_similar_name_is_named(built_in: Path) -> None:
    (built_in.parent / "mine.yaml").write_text("tokenizer: {}\n")
    with pytest.raises(RecipeError, match=r"Did you mean '.*/mine\.yaml'\?"):
        load_section(str(built_in.parent / "mine.yml"), "tokenizer", Section, built_in)
    with pytest.raises(RecipeError, match="Check the path"):
        load_section(str(built_in.parent / "no" / "mine.yml"), "tokenizer", Section, built_in)
    (built_in.parent / "latin.yaml").write_bytes("tokenizer: {vocab_size: \u00fc}".encode("latin-1"))
    with pytest.raises(RecipeError, match="Save the file as UTF-8"):
        load_section(str(built_in.parent / "latin.yaml"), "tokenizer", Section, built_in)
