"""A later corpus leaves out what an earlier one has, and says of which document it was a copy."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from roots_pipeline.config import advice_on, load_corpus_recipe
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.explain import as_text, explain_document
from roots_pipeline.verify import verify_corpus
from tests.pipeline.test_run import rows, run, write_lines, write_recipe


def remember(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "roots_pipeline", "remember", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_an_old_corpus_has_is_left_out_of_a_new_one(tmp_path: Path) -> None:
    dice = random.Random(3)
    words = [f"w{number}" for number in range(300)]
    old = [" ".join(dice.choices(words, k=60)) for _ in range(20)]
    near = [f"{text} and one more" for text in old[5:10]]
    new = [*old[:5], *near, *(" ".join(dice.choices(words, k=60)) for _ in range(10)), "w1 w2", "w1 w2"]
    stages = [{"stage": "exact_duplicates"}, {"stage": "near_duplicates", "ngram": 3}]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_lines(tmp_path / "a.jsonl", old, "old")
    write_lines(tmp_path / "b.jsonl", new, "new")
    first = write_recipe(tmp_path / "a", [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "a.jsonl")}], stages)
    run(first, tmp_path / "a" / "corpus")
    done = remember("--recipe", first, "--run", str(tmp_path / "a"), "--to", str(tmp_path / "reference"))
    assert done.returncode == 0, done.stderr
    against = [{**stage, "against": [str(tmp_path / "reference")]} for stage in stages]
    second = write_recipe(tmp_path / "b", [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "b.jsonl")}], against)
    run(second, tmp_path / "b" / "corpus")
    dropped = {row["id"]: (row["verdict"], row["cause"]) for row in rows(tmp_path / "b" / "corpus", "rejected")}
    assert dropped == {
        **{f"new{number}": ("known_exact_duplicates", f"old{number}") for number in range(5)},
        **{f"new{number}": ("known_near_duplicates", f"old{number}") for number in range(5, 10)},
        "new21": ("exact_duplicates", "new20"),
    }
    assert verify_corpus(str(tmp_path / "b" / "corpus")).problems == []
    told, = explain_document(str(tmp_path / "b" / "corpus"), "new7")
    assert "because of old7 of another corpus" in as_text(told)


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ["text"])
    sources = [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "a.jsonl")}]
    recipe = write_recipe(tmp_path, sources, [{"stage": "massivetext"}])
    done = remember("--recipe", recipe, "--run", str(tmp_path), "--to", str(tmp_path / "r"))
    assert done.returncode == 2 and "no stage of this recipe can remember" in done.stderr
    recipe = write_recipe(tmp_path, sources, [{"stage": "exact_duplicates", "against": [str(tmp_path / "nowhere")]}])
    with pytest.raises(RecipeError, match="there is no reference"):
        load_corpus_recipe(recipe)


def test_a_slip_in_prefer_is_told_and_an_inherited_one_is_not(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ["text"])
    sources = [{"name": name, "kind": "jsonl", "path": str(tmp_path / "a.jsonl")} for name in ("wiki", "news")]
    for prefer, right in ((["wiki", "newz"], False), (["web", "pages"], True), (["news", "wiki"], True)):
        recipe = write_recipe(tmp_path, sources, [{"stage": "near_duplicates", "prefer": prefer}])
        advice = " ".join(advice_on(load_corpus_recipe(recipe)))
        assert advice == "" if right else "'newz'" in advice and "'news'" in advice
