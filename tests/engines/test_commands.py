"""The commands behind the corpus with `--engine beam`: the files of the local engine, and mistakes as sentences."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from mixtures.__main__ import app as mixtures
from roots_pipeline.core.errors import RecipeError, RootbloomError
from roots_pipeline.engines import beam
from tests.engines.chain import Made, digests
from tokenizer.__main__ import app as tokenizer


def call(app: typer.Typer, *arguments: str) -> str:
    """What a command prints; raises what it raises."""
    return CliRunner().invoke(app, arguments, catch_exceptions=False).output


def test_tokenizer_and_mixture_on_beam(expected: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, jobs, build = tmp_path / "run", [], beam._build

    def noted(*arguments: Any) -> None:
        jobs.append(arguments)
        build(*arguments)

    monkeypatch.setattr(beam, "_build", noted)
    shutil.copytree(expected.run / "corpus", run / "corpus")
    call(tokenizer, "train", "--recipe", "smoke", "--run", str(run), "--quiet", "--engine", "beam")
    assert len(jobs) == 1
    call(mixtures, "write", "--recipe", "smoke", "--run", str(run), "--quiet", "--engine", "beam", "--",
         "--runner", "FnApiRunner")
    assert len(jobs) == 2
    assert digests(run) == expected.files
    assert {name.split("/")[0] for name in expected.files} == {"corpus", "tokenizer", "mixture"}
    assert (run / "tokenizer" / "tokenizer.json").read_bytes() == (
        expected.run / "tokenizer" / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(("app", "command"), [(tokenizer, "train"), (tokenizer, "count"), (mixtures, "write")])
def test_options_that_beam_does_not_know(app: typer.Typer, command: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"do not know these options: .*--no_such"):
        call(app, command, "--recipe", "smoke", "--run", str(tmp_path), "--engine", "beam", "--", "--no_such", "1")


def test_a_run_without_a_corpus_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RootbloomError, match="corpus"):
        call(tokenizer, "train", "--recipe", "smoke", "--run", str(tmp_path), "--engine", "beam")
