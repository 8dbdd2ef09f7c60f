"""A run remembers which recipes made it, and nobody replaces it by the sample through leaving the recipe out."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from roots_pipeline.__main__ import app
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe_note import note_recipe, noted_recipe, noting, recipe_for


def test_without_a_name_it_is_the_sample(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    assert recipe_for(run, "corpus", None) == "sample" and noted_recipe(run, "corpus") is None
    assert recipe_for(run, "model", "mine.yaml") == "mine.yaml"
    note_recipe(run, "corpus", "sample")
    assert recipe_for(run, "mixture", None) == "sample"


def test_another_recipe_must_be_named_again(tmp_path: Path) -> None:
    run = str(tmp_path)
    note_recipe(run, "tokenizer", "mine.yaml")
    assert recipe_for(run, "corpus", None) == "sample"  # later steps say nothing of earlier ones
    for step in ("tokenizer", "mixture", "model"):
        with pytest.raises(RecipeError, match=r"the tokenizer of this run was made with the recipe 'mine\.yaml'"):
            recipe_for(run, step, None)
        assert recipe_for(run, step, "sample") == "sample"
    note_recipe(run, "mixture", "sample")
    assert recipe_for(run, "model", None) == "sample"


def test_what_is_refused_changes_no_note(tmp_path: Path) -> None:
    run = str(tmp_path)
    with pytest.raises(RuntimeError), noting(run, "corpus", "first.yaml"):
        raise RuntimeError("killed")
    assert noted_recipe(run, "corpus") == "first.yaml"
    with pytest.raises(RuntimeError), noting(run, "corpus", "other.yaml"):
        raise RuntimeError("in use")
    assert noted_recipe(run, "corpus") == "first.yaml"
    with noting(run, "corpus", "other.yaml"):
        pass
    assert noted_recipe(run, "corpus") == "other.yaml"


@pytest.mark.parametrize("content", ["[]", "{}", '{"recipe": 3}', '{"recipe": ""}', '{"rec', ""])
def test_a_damaged_note_asks_for_a_name_and_is_renewed_by_one(tmp_path: Path, content: str) -> None:
    run = str(tmp_path)
    note_recipe(run, "corpus", "mine.yaml")
    (tmp_path / "recipes" / "corpus.json").write_text(content)
    assert noted_recipe(run, "corpus") is None
    for step in ("corpus", "model"):  # the sample would replace what someone made
        with pytest.raises(RecipeError, match=r"the note is damaged\. Name the recipe with --recipe"):
            recipe_for(run, step, None)
    with noting(run, "corpus", recipe_for(run, "corpus", "mine.yaml")):
        assert noted_recipe(run, "corpus") == "mine.yaml"


def test_the_command_asks_and_the_report_names_it(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"""corpus:
  sources: [{{name: s, kind: jsonl, path: {tmp_path / 'in.jsonl'}, language: en}}]
  stages: [{{stage: exact_duplicates}}]
""")
    run = ["--run", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["run", "--recipe", str(recipe), *run, "--workers", "1", "--quiet"])
    assert done.exit_code == 0, done.output
    again = CliRunner().invoke(app, ["run", *run])
    assert isinstance(again.exception, RecipeError) and f"Add --recipe {recipe}" in str(again.exception)
    assert CliRunner().invoke(app, ["report", *run]).exit_code == 0
    assert f"roots_pipeline run --recipe {recipe}" in (tmp_path / "run" / "report.html").read_text()
