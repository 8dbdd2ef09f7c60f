"""The commands on a small mixture: run, continue, finish, export, generate, and users' mistakes in one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from mixtures.config import load_mixture_recipe
from mixtures.write import write_mixture
from roots_pipeline.core.errors import RootbloomError, StaleDataError
from roots_pipeline.core.manifest import read_manifest, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Task, run_task
from tests.mixtures.small_run import write_run
from train.__main__ import app
from train.job import plan

RECIPE = {
    "model": {"hidden": 32, "layers": 2, "heads": 4, "init_std": 0.05},
    "sequence_length": 16, "micro_batch": 2, "global_batch": 4, "train_samples": 24, "lr": 5e-3, "min_lr": 5e-4,
    "warmup_samples": 4, "precision": "fp32", "validation_samples": 4, "evaluate_every": 3, "save_every": 2,
}  # fmt: skip


class Here:
    """Runs tasks in this process."""

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        return [run_task(task) for task in tasks]


def command(*arguments: str) -> Result:
    """One command, in this process."""
    return CliRunner().invoke(app, list(arguments))


def prepare(run: Path) -> Path:
    """A run with a mixture, and the recipe to train on it."""
    write_run(run)
    made = read_manifest(str(run / "tokenizer"))
    write_manifest(
        str(run / "tokenizer"), "tokenizer", config={}, inputs={}, fingerprint=made.fingerprint, files=made.files,
        counts={"vocab_size": 500, "padded_vocab_size": 512},
    )  # fmt: skip
    write_mixture(load_mixture_recipe("sample"), str(run), Here(), Progress(quiet=True))
    recipe = run / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"train": RECIPE}))
    return recipe


@dataclass
class Trained:
    """A run stopped after three steps, then continued to its end."""

    run: Path
    options: tuple[str, ...]
    results: list[Result]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    run = tmp_path_factory.mktemp("run")
    options = ("run", "--recipe", str(prepare(run)), "--run", str(run))
    return Trained(run, options, [command(*options, "--stop-after", "3"), command(*options)])


def test_run_continues_and_finishes(trained: Trained) -> None:
    assert [result.exit_code for result in trained.results] == [0, 0], trained.results[-1].exception
    assert "Continuing after step 3" in trained.results[1].stderr
    model = trained.run / "model"
    records = [orjson.loads(line) for line in (model / "log.jsonl").read_bytes().splitlines()]
    assert [record["step"] for record in records if "loss" in record] == [1, 2, 3, 4, 5, 6]
    assert [record["step"] for record in records if "validation_loss" in record] == [0, 3, 6]
    counts = read_manifest(str(model)).counts
    assert (counts["steps"], counts["samples"], counts["tokens"]) == (6, 24, 384)
    assert [path.name for path in sorted((model / "checkpoints").glob("step_*"))] == ["step_00000004", "step_00000006"]
    assert [result.stdout for result in trained.results] == ["", ""]


def test_finished_run_does_nothing(trained: Trained) -> None:
    before = {path: path.stat().st_mtime_ns for path in (trained.run / "model").rglob("*") if path.is_file()}
    again = command(*trained.options)
    assert again.exit_code == 0 and "already finished" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_generate_prints_the_prompt_and_more_after_exporting(trained: Trained) -> None:
    arguments = ("generate", "--run", str(trained.run), "--prompt", "the quick", "--tokens", "5", "--quiet")
    result = command(*arguments)
    assert result.exit_code == 0 and result.stdout.startswith("the quick") and len(result.stdout) > 10
    exported = trained.run / "model" / "export"
    assert read_manifest(str(exported)).counts["step"] == 6
    written = (exported / "model.safetensors").stat().st_mtime_ns
    assert command(*arguments).stdout == result.stdout
    assert (exported / "model.safetensors").stat().st_mtime_ns == written
    assert command("export", "--run", str(trained.run), "--strip-padding").exit_code == 0
    assert read_manifest(str(exported)).counts["rows"] == read_manifest(str(exported)).counts["vocab_size"]


def test_changed_data_is_refused_before_training(trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained.run, tmp_path / "copy", ignore=shutil.ignore_patterns("model"))
    path = tmp_path / "copy" / "mixture" / "web.en.bin"
    path.write_bytes(bytes(reversed(path.read_bytes())))
    with pytest.raises(StaleDataError, match="content is not what the lock describes"):
        plan(trained.options[2], tmp_path / "copy", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--recipe", "smaple"), "Did you mean 'sample'?"),
        (("run", "--recipe", "sample", "--run", "nowhere"), "Run `python -m mixtures write` first."),
        (("run", "--recipe", "bloom-176b", "--processes", "8"), "Use --processes 48"),
        (("generate", "--run", "nowhere"), "Run `python -m train run` first."),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], message: str) -> None:
    result = command(*arguments)
    assert isinstance(result.exception, RootbloomError) and message in str(result.exception)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"lr": 4e-3}, (), "another run: lr was 0.005, now it is 0.004"),
        ({}, ("--processes", "2"), "layout data 1 x tensor 1 x pipeline 1, this run has data 2"),
    ],
)
def test_run_that_cannot_continue_is_refused_before_it_starts(
    trained: Trained, tmp_path: Path, changes: dict[str, Any], options: tuple[str, ...], message: str
) -> None:
    recipe = tmp_path / "changed.yaml"
    recipe.write_text(yaml.safe_dump({"train": {**RECIPE, **changes}}))
    result = command("run", "--recipe", str(recipe), "--run", str(trained.run), *options)
    assert isinstance(result.exception, RootbloomError) and message in str(result.exception)


def test_how_a_failed_process_is_reported() -> None:
    """A process that explained itself needs no second message; one that was killed needs one."""
    start = (
        "import sys; from train.launch import run_workers; sys.exit(run_workers(2, ['tests.train.fails', sys.argv[1]]))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    results = [
        subprocess.run(
            [sys.executable, "-c", start, how], env=environment, timeout=300, capture_output=True, text=True,
            check=False, cwd=Path(__file__).resolve().parents[2],
        )
        for how in ("mistake", "killed")
    ]  # fmt: skip
    assert results[0].returncode == 2 and results[0].stderr == "error: explained\n"
    assert (
        "EngineError: process 1 of 2 was ended by SIGKILL (often: the machine ran out of memory)" in results[1].stderr
    )
