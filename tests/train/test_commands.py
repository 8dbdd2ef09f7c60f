"""The commands on a small mixture: run, continue, finish, export, generate, and users' mistakes in one sentence."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner, Result

from mixtures.config import load_mixture_recipe
from mixtures.dataset import validation_sets
from mixtures.lock import Lock, read_lock, write_lock
from mixtures.write import write_mixture
from roots_pipeline.core.errors import RootbloomError, StaleDataError
from roots_pipeline.core.manifest import read_manifest, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Task, run_task
from tests.mixtures.small_run import write_run
from tokenizer.encode import Encoder
from train.__main__ import app
from train.job import plan
from train.validation import open_validation

RECIPE = {
    "model": {"hidden": 32, "layers": 2, "heads": 4, "init_std": 0.05},
    "sequence_length": 16, "micro_batch": 2, "global_batch": 4, "train_samples": 24, "lr": 5e-3, "min_lr": 5e-4,
    "warmup_samples": 4, "precision": "fp32", "validation_samples": 4, "evaluate_every": 3, "save_every": 2,
    "validation_groups": "all", "validation_group_samples": 0,
}  # fmt: skip


class Here:
    """Runs tasks in this process."""

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        return [run_task(task) for task in tasks]


def command(*arguments: str) -> Result:
    """One command, in this process."""
    return CliRunner().invoke(app, list(arguments))


def prepare(run: Path, **mixture: Any) -> Path:
    """A run with a mixture (that of the sample but for `mixture`), and the recipe to train on it."""
    write_run(run)
    made = read_manifest(str(run / "tokenizer"))
    write_manifest(
        str(run / "tokenizer"), "tokenizer", config={}, inputs={}, fingerprint=made.fingerprint, files=made.files,
        counts={"vocab_size": 500, "padded_vocab_size": 512},
    )  # fmt: skip
    settings = load_mixture_recipe("sample").model_copy(update=mixture)
    write_mixture(settings, str(run), Here(), Progress(quiet=True))
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
    sets = [record["validation"] for record in records if "validation" in record]
    held_out = validation_sets(str(trained.run / "mixture" / "mixture.lock.yaml"), 4, sequence_length=16)
    assert [list(found) for found in sets] == [list(held_out)] * 3 and len(held_out) > 2
    tokens = Encoder.from_file(str(trained.run / "tokenizer" / "tokenizer.json"))
    for name, source in held_out.items():
        labels = [int(one) for index in range(4) for one in source[index][1:]]
        found, size = sets[-1][name], len(tokens.decode_bytes(labels))
        assert found["bits_per_byte"] == pytest.approx(found["loss"] * len(labels) / math.log(2) / size)
    counts = read_manifest(str(model)).counts
    assert (counts["steps"], counts["samples"], counts["tokens"]) == (6, 24, 384)
    assert [path.name for path in sorted((model / "checkpoints").glob("step_*"))] == ["step_00000004", "step_00000006"]
    assert ["trained steps │ 3" in result.stdout for result in trained.results] == [True, False]
    assert "trained steps │ 6" in trained.results[1].stdout and "log.jsonl" in trained.results[1].stdout
    told = orjson.loads(command(*trained.options, "--json").stdout)
    assert (told["trained_steps"], told["steps"], told["tokens"]) == (6, 6, 384)
    assert command(*trained.options, "--quiet").stdout == ""


def test_a_dry_run_trains_nothing(tmp_path: Path) -> None:
    done = command("run", "--recipe", str(prepare(tmp_path)), "--run", str(tmp_path), "--dry-run", "--json")
    told = orjson.loads(done.stdout)
    assert (told["trained_steps"], told["steps"], told["samples"]) == (0, 6, 24)
    assert not (tmp_path / "model").exists()


def test_the_heaviest_groups_can_be_asked_for_by_number(trained: Trained) -> None:
    lock = str(trained.run / "mixture" / "mixture.lock.yaml")
    everything = [one.name for one in open_validation(lock, 16, 4, "all", 2)]
    weights = {name: group.weight for name, group in read_lock(lock).groups.items()}
    for count in (1, 2, 99):
        sets = open_validation(lock, 16, 4, count, 2)
        names = [one.name for one in sets[1:]]
        assert sets[0].name == "blend" and names == sorted(everything[1:], key=lambda name: -weights[name])[:count]
        assert {one.samples for one in sets[1:]} == {2}


def test_from_steps_to_documents_and_back(trained: Trained) -> None:
    """Every document of every step names that step, and no other step names the document."""
    base = ("explain", "--run", str(trained.run), "--recipe", trained.options[2])
    by_step = {
        step: {row["id"] for row in map(orjson.loads, command(*base, "--step", str(step)).stdout.splitlines())}
        for step in range(1, 7)
    }
    for id in sorted(set().union(*by_step.values()))[:5]:
        rows = [orjson.loads(line) for line in command(*base, id).stdout.splitlines()]
        assert {one for row in rows for one in row["steps"]} == {step for step, ids in by_step.items() if id in ids}
    for wrong in (("--step", "7"), ("--step", "0"), ("nobody",), ()):
        assert isinstance(command(*base, *wrong).exception, RootbloomError)


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


def test_continuation_is_kept_for_the_report(trained: Trained) -> None:
    printed = command("generate", "--run", str(trained.run), "--prompt", "the quick", "--tokens", "5", "--quiet").stdout
    kept = orjson.loads((trained.run / "model" / "generated.json").read_bytes())
    assert kept["prompt"] == "the quick" and kept["text"] and printed == "the quick" + kept["text"] + "\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--temperature", "-1"), "--temperature: a temperature of -1.0 is impossible. Use 0 "),
        (("--temperature", "nan"), "a temperature of nan is impossible"),
        (("--temperature", "1e-9"), "0.01 to 100"),
        (("--top-p", "0"), "--top-p: a share of 0.0 is impossible"),
        (("--seed", "-1"), "--seed: -1 is no seed"),
        (("--seed", str(2**64)), "Use 0 to 9223372036854775807"),
        (("--tokens", "0"), "--tokens: 0 tokens cannot be asked for. Use 1 to 65536"),
        (("--tokens", "65536", "--prompt", "the quick"), "above the limit of 65536"),
        (("--prompt", "a\udcff"), r"--prompt: the prompt is no text: character 2 is '\udcff'"),
    ],
)
def test_impossible_options_of_generate(trained: Trained, options: tuple[str, ...], message: str) -> None:
    result = command("generate", "--run", str(trained.run), "--quiet", *options)
    assert isinstance(result.exception, RootbloomError) and message in str(result.exception)


def test_damaged_export_is_written_again(trained: Trained) -> None:
    arguments = ("generate", "--run", str(trained.run), "--prompt", "the quick", "--tokens", "5")
    before = command(*arguments)
    weights = trained.run / "model" / "export" / "model.safetensors"
    flip_a_bit(weights)
    after = command(*arguments)
    assert "model.safetensors of the export is not what was written; it is exported again" in after.stderr
    assert (after.exit_code, after.stdout) == (0, before.stdout)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def changed_mixture(run: Path) -> None:
    path = run / "mixture" / "web.en.bin"
    path.write_bytes(bytes(reversed(path.read_bytes())))


def lost_group(run: Path) -> None:
    for path in (run / "mixture").glob("web.fr.*"):
        path.unlink()


def edited_tokenizer(run: Path) -> None:
    path = run / "tokenizer" / "tokenizer.json"
    path.write_text(path.read_text().replace("<pad>", "<pbd>"))


def another(step: str, run: Path) -> None:
    made = read_manifest(str(run / step))
    write_manifest(
        str(run / step), step, config={}, inputs={}, fingerprint="f" * 32, files=made.files, counts=made.counts
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_mixture, "content is not what the lock describes"),
        (partial(another, "corpus"), "made from another corpus"),
        (partial(another, "tokenizer"), "made from another tokenizer"),
        (edited_tokenizer, r"tokenizer\.json: its content is not what the manifest describes"),
        (lost_group, r"web\.fr\.bin: a file of the mixture is missing"),
    ],
)
def test_changed_data_is_refused_before_training(
    trained: Trained, tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    shutil.copytree(trained.run, tmp_path / "copy", ignore=shutil.ignore_patterns("model"))
    plan(trained.options[2], tmp_path / "copy", 1)
    change(tmp_path / "copy")
    with pytest.raises(StaleDataError, match=message):
        plan(trained.options[2], tmp_path / "copy", 1)


def test_a_run_does_not_go_on_with_another_mixture(trained: Trained, tmp_path: Path) -> None:
    """The files fit the new lock, so only the run itself knows that it was trained on something else."""
    run = tmp_path / "copy"
    shutil.copytree(trained.run, run)
    path = run / "mixture" / "mixture.lock.yaml"
    lock = read_lock(str(path))

    def refused(changed: Lock) -> str:
        write_lock(str(path), changed)
        with pytest.raises(StaleDataError, match="trained on another mixture") as caught:
            plan(trained.options[2], run, 1)
        return str(caught.value)

    heavier = replace(lock.groups["web.en"], weight=0.9)
    message = refused(replace(lock, groups={**lock.groups, "web.en": heavier}))
    assert f"weight of web.en was {lock.groups['web.en'].weight}, now 0.9. Put the mixture back" in message
    assert "seed was 42, now 43" in refused(replace(lock, seed=43))
    without = {name: group for name, group in lock.groups.items() if name != "web.fr"}
    assert "group web.fr is missing" in refused(replace(lock, groups=without))
    result = command(*trained.options[:-1], str(run))
    assert isinstance(result.exception, StaleDataError) and not result.stdout
    write_lock(str(path), lock)
    assert plan(trained.options[2], run, 1).mixture == lock.fingerprint


def test_mixture_may_travel_without_its_corpus(trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained.run, tmp_path / "copy", ignore=shutil.ignore_patterns("model", "corpus"))
    assert plan(trained.options[2], tmp_path / "copy", 1).identity()["tokenizer"]


def test_export_with_another_tokenizer_is_refused(trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained.run, tmp_path / "copy")
    path = tmp_path / "copy" / "tokenizer" / "tokenizer.json"
    path.write_bytes(path.read_bytes() + b"\n")
    result = command("export", "--run", str(tmp_path / "copy"))
    assert isinstance(result.exception, StaleDataError) and "tokenizer.json is not what" in str(result.exception)
    another("tokenizer", tmp_path / "copy")
    for name in ("export", "generate"):
        result = command(name, "--run", str(tmp_path / "copy"))
        assert isinstance(result.exception, StaleDataError)
        assert "step_00000006 was trained with another tokenizer" in str(result.exception)


@pytest.mark.parametrize("lost", [True, False])
def test_lost_or_damaged_last_checkpoint_is_trained_again(trained: Trained, tmp_path: Path, lost: bool) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained.run, run)
    last = run / "model" / "checkpoints" / "step_00000006"
    if lost:
        shutil.rmtree(last)
    else:
        flip_a_bit(next(last.glob("*optim_states.pt")))
    refused = command("export", "--run", str(run))
    assert isinstance(refused.exception, StaleDataError)
    assert "train run` again to train the missing steps, or use the older one with --step 4" in str(refused.exception)
    again = command("run", "--recipe", trained.options[2], "--run", str(run))
    assert again.exit_code == 0 and "the steps after 4 are trained again" in again.stderr
    assert command("export", "--run", str(run)).exit_code == 0
    command("export", "--run", str(trained.run))
    weights = ("model", "export", "model.safetensors")
    assert run.joinpath(*weights).read_bytes() == trained.run.joinpath(*weights).read_bytes()


def test_converted_run_goes_on_and_names_what_to_set(trained: Trained, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained.run, run)
    shutil.rmtree(run / "model" / "checkpoints" / "step_00000006")
    (run / "model" / "checkpoints" / "latest").unlink()
    result = command("convert", "--run", str(run), "--tensor-parallel", "2", "--data-parallel", "2")
    assert "set train.tensor_parallel 2, train.pipeline_parallel 1 and start 4 processes" in result.stderr
    shutil.rmtree(run / "model" / "checkpoints" / "step_00000004")
    assert command("run", "--recipe", trained.options[2], "--run", str(run)).exit_code == 0
    logs = [(folder / "model" / "log.jsonl").read_bytes().splitlines() for folder in (run, trained.run)]
    ends = [orjson.loads([line for line in log if b"gradient_norm" in line][-1]) for log in logs]
    assert ends[0]["step"] == 6 and ends[0]["loss"] == ends[1]["loss"]
    refused = command("convert", "--run", str(run), "--tensor-parallel", "3")
    assert isinstance(refused.exception, RootbloomError) and "Use tensor_parallel 2 or 4" in str(refused.exception)


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
        ({"seed": 4}, ("--processes", "2"), "another run: seed was 42, now it is 4"),
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
