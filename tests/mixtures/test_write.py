"""The whole step and its commands: lock, resume, reuse, changed inputs, verification."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mixtures.__main__ import app
from mixtures.config import MixtureRecipe, load_mixture_recipe
from mixtures.dataset import BlendedDataset
from mixtures.files import _imported
from mixtures.lock import NAME, Lock, read_lock, write_lock
from mixtures.plan import plan_rows, warnings
from mixtures.verify import verify_group, verify_mixture
from mixtures.write import write_mixture
from roots_pipeline.core.errors import EmptyOutputError, MixtureError, RecipeError, RootbloomError, StaleDataError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import finished_result
from roots_pipeline.engines.local import LocalEngine
from tests.mixtures.small_run import Row, mixed_shards, write_corpus, write_run, write_tokenizer


class Counting(LocalEngine):
    """A local engine in this process that counts the tasks it really runs."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: list[int] = []

    def run(self, tasks: Any, title: str) -> list[dict[str, Any]]:
        self.asked.append(sum(finished_result(task) is None for task in tasks))
        return super().run(tasks, title)


def recipe(**changes: Any) -> MixtureRecipe:
    return MixtureRecipe.model_validate(
        {**load_mixture_recipe("sample").model_dump(), "sequence_length": 16, **changes}
    )


def write(run: str, **changes: Any) -> tuple[Lock, int]:
    """The lock, and how many tasks ran for it."""
    engine = Counting()
    lock = write_mixture(recipe(**changes), run, engine, Progress(quiet=True))
    return lock, sum(engine.asked)


def files_of(run: str) -> dict[str, bytes]:
    folder = Path(run) / "mixture"
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file() and path.suffix != ".jsonl"
    }


def test_the_lock_describes_the_files(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    lock, tasks = write(run)
    assert tasks == 3 + 5
    assert list(lock.groups) == ["code.python", "web.en", "web.fr", "web.hi", "web.und"]
    assert read_lock(f"{run}/mixture/{NAME}") == lock
    assert abs(sum(group.weight for group in lock.groups.values()) - 1) < 1e-12
    for group in lock.groups.values():
        assert group.documents == group.train_documents + group.validation_documents
        assert group.tokens == group.train_tokens + group.validation_tokens
    assert sum(group.documents for group in lock.groups.values()) == 48
    assert lock.dtype == "uint16" and lock.end_of_text == 2
    assert lock.groups["web.hi"].validation_documents == 0 < lock.groups["code.python"].validation_documents
    report = verify_mixture(
        f"{run}/mixture", f"{run}/tokenizer/tokenizer.json", corpus=lock.corpus, tokenizer=lock.tokenizer
    )
    assert report.documents == 48 and len(report.texts) == 5
    dataset = BlendedDataset(f"{run}/mixture/{NAME}", "train", 100)
    assert {dataset.location(number)[0] for number in range(100)} == set(lock.groups)


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    write(run)
    before = files_of(run)
    assert not (Path(run) / "mixture" / ".work" / "pieces").exists()
    assert write(run)[1] == 0 and files_of(run) == before
    # Other weights, seed, split and length: only the lock changes.
    lock, tasks = write(run, weights={"rule": "proportional"}, seed=1, split={"method": "hash", "share": 0.3})
    after = files_of(run)
    assert tasks == 0 and lock.seed == 1
    assert [name for name in before if before[name] != after[name]] == ["manifest.json", NAME]


def test_a_changed_shard_encodes_only_that_shard(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    assert write(run, keep_pieces=True)[1] == 8
    shards = mixed_shards()
    shards["code-00000"] = shards["code-00000"][:3]
    write_corpus(Path(run) / "corpus", shards)
    lock, tasks = write(run, keep_pieces=True)
    assert tasks == 2 and lock.groups["code.python"].documents == 3
    del shards["code-00000"]
    write_corpus(Path(run) / "corpus", shards)
    lock, tasks = write(run, keep_pieces=True)
    assert tasks == 0 and "code.python" not in lock.groups
    assert {path.stem for path in (Path(run) / "mixture" / ".work" / "pieces").iterdir()} == {"web-00000", "web-00001"}
    assert not list((Path(run) / "mixture").glob("code.python*"))


def test_another_tokenizer_encodes_again(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    first, _ = write(run)
    other = write_tokenizer(Path(run) / "tokenizer", 290)
    folder = f"{run}/mixture"
    with pytest.raises(StaleDataError, match="another tokenizer"):
        verify_mixture(folder, f"{run}/tokenizer/tokenizer.json", corpus=first.corpus, tokenizer=other)
    second, tasks = write(run)
    assert tasks == 8 and second.tokenizer == other != first.tokenizer


def test_a_lost_file_is_written_again(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    write(run)
    before = files_of(run)
    (Path(run) / "mixture" / "web.en.bin").unlink()
    assert write(run)[1] == 3 + 1
    assert files_of(run) == before


def test_a_damaged_file_is_written_again(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    write(run)
    before = files_of(run)
    for name in ("web.en.bin", "web.en.idx", "web.en.documents.parquet"):
        path = Path(run) / "mixture" / name
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        write(run)
        assert files_of(run) == before, name
    summary = Path(run) / "mixture" / ".work" / "groups.json"
    good = json.loads(summary.read_bytes())
    mark = good["fingerprint"]
    broken: list[Any] = [[], {}, 3, {"fingerprint": mark}, {**good, "groups": {}}, {**good, "groups": {"a": 1}}]
    for value in broken:
        summary.write_text(json.dumps(value))
        write(run)
        assert files_of(run) == before and json.loads(summary.read_bytes()) == good


def test_damaged_inputs_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    write(run)
    for name in ("corpus/documents/web-00001.parquet", "tokenizer/tokenizer.json"):
        path = Path(run) / name
        good = path.read_bytes()
        path.write_bytes(good[:99] + bytes([good[99] ^ 1]) + good[100:])
        (Path(run) / "mixture" / ".work" / "groups.json").unlink(missing_ok=True)
        message = rf"{path.name}: its content is not what the manifest describes \(\w{{12}} instead of \w{{12}}\)"
        with pytest.raises(StaleDataError, match=message):
            write(run)
        verified = CliRunner().invoke(app, ["verify", "--run", run])
        assert isinstance(verified.exception, StaleDataError) and path.name in str(verified.exception)
        path.write_bytes(good)


def test_order_of_shards_and_workers_does_not_matter(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a")
    write(first)
    shards = dict(reversed(mixed_shards().items()))
    second = write_run(tmp_path / "b", shards)
    with LocalEngine(2) as engine:
        write_mixture(recipe(), second, engine, Progress(quiet=True))
    left, right = files_of(first), files_of(second)
    assert left == right


def test_a_run_killed_anywhere_goes_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    write(run)
    wanted = files_of(run)
    other = write_run(tmp_path / "b")
    command = [sys.executable, "-m", "mixtures", "write", "--recipe", _recipe_file(tmp_path), "--run", other, "--quiet"]
    process = subprocess.Popen([*command, "--workers", "1"])
    deadline = time.monotonic() + 60
    while process.poll() is None and not list((Path(other) / "mixture").glob(".work/pieces/*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.wait()
    write(other)
    assert files_of(other) == wanted
    assert not list(Path(other).rglob("*.tmp"))


def _recipe_file(folder: Path) -> str:
    path = folder / "mine.yaml"
    path.write_text("mixture:\n  sequence_length: 16\n", "utf-8")
    return str(path)


def test_the_code_that_decides_the_files(project: Path) -> None:
    names = {path.name for path in _imported(project, "tokenizer/encode.py")}
    assert {"encode.py", "merge_table.py", "pretokenize.py", "word_cache.py", "tokenizer_file.py"} <= names
    assert not names & {"__main__.py", "bpe.py", "count.py"}  # training does not decide how text is encoded


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"weights": {"rule": "explicit", "weights": {"web.eng": 1}}}, MixtureError, r"Did you mean 'web\.en'"),
        (
            {"weights": {"rule": "explicit", "weights": {"web.en": 1}}},
            MixtureError,
            "no weight is given for code.python",
        ),
        ({"weights": {"rule": "explicit", "weights": {"*": -1}}}, MixtureError, r"weight of \* is -1"),
        ({"weights": {"rule": "preset", "name": "rots"}}, MixtureError, "Did you mean 'roots'"),
        ({"weights": {"rule": "preset", "name": "roots"}}, MixtureError, "no group matches"),
        ({"split": {"method": "range", "train": "0:0.9", "validation": "0.8:1"}}, MixtureError, "for train and for va"),
        ({"split": {"method": "comma", "parts": "0,0,0"}}, MixtureError, r"add up to 0\.0"),
    ],
)
def test_impossible_mixtures(
    tmp_path: Path, changes: dict[str, Any], error: type[RootbloomError], message: str
) -> None:
    with pytest.raises(error, match=message):
        write(write_run(tmp_path), **changes)


def test_weights_of_all_kinds(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    lock, _ = write(run, weights={"rule": "explicit", "weights": {"code.*": 0.4, "web.*": 0.6}})
    assert lock.groups["code.python"].weight == pytest.approx(0.4)
    lock, _ = write(run, weights={"rule": "preset", "name": "roots", "unmatched": "leave_out"})
    assert lock.groups["web.und"].weight == 0 < lock.groups["web.hi"].weight < lock.groups["web.fr"].weight
    groups = {"Books": ["web.fr"], "MassiveWeb": ["web.*"], "GitHub": ["code.*"]}
    lock, _ = write(run, weights={"rule": "preset", "name": "massivetext", "groups": groups, "unmatched": "leave_out"})
    assert lock.groups["web.fr"].weight == pytest.approx(0.27 / 0.78)
    lock, _ = write(run, weights={"rule": "unimax", "tokens": 100, "max_epochs": 4})
    assert {group.weight for group in lock.groups.values()} == {0.2}


def test_missing_steps(tmp_path: Path) -> None:
    with pytest.raises(StaleDataError, match=r"python -m roots_pipeline run"):
        write(str(tmp_path))
    write_corpus(tmp_path / "corpus", {"web-00000": []})
    with pytest.raises(StaleDataError, match=r"python -m tokenizer train"):
        write(str(tmp_path))
    write_tokenizer(tmp_path / "tokenizer")
    with pytest.raises(EmptyOutputError, match="holds no documents"):
        write(str(tmp_path))
    run = write_run(tmp_path / "b")
    (Path(run) / "corpus" / "documents" / "web-00000.parquet").unlink()
    with pytest.raises(StaleDataError, match=r"web-00000\.parquet is missing"):
        write(run)


def test_plan(tmp_path: Path) -> None:
    lock, _ = write(write_run(tmp_path))
    rows = plan_rows(lock, 10_000)
    assert sum(row.weight for row in rows) == pytest.approx(1) and sum(row.read for row in rows) == pytest.approx(
        10_000
    )
    assert [row.weight for row in rows] == sorted((row.weight for row in rows), reverse=True)
    hindi = next(row for row in rows if row.name == "web.hi")
    assert hindi.epochs == pytest.approx(10_000 * hindi.weight / lock.groups["web.hi"].train_tokens)
    assert any(sentence.startswith("web.hi would be read") for sentence in warnings(rows, 4))
    with pytest.raises(MixtureError, match="less than one sample"):
        plan_rows(lock, 3)


def test_verification_finds_what_is_wrong(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    lock, _ = write(run)
    folder, tokenizer = Path(run) / "mixture", f"{run}/tokenizer/tokenizer.json"
    good = (folder / "web.en.bin").read_bytes()
    (folder / "web.en.bin").write_bytes(good[:-2] + b"\x05\x00")
    with pytest.raises(StaleDataError, match="content is not what the lock describes"):
        verify_mixture(str(folder), tokenizer, corpus=lock.corpus, tokenizer=lock.tokenizer)
    with pytest.raises(StaleDataError, match=r"document \d+ does not end with token 2"):
        verify_group(lock, "web.en", str(folder))
    (folder / "web.en.bin").write_bytes(b"\xff\xff" + good[2:])
    with pytest.raises(StaleDataError, match="token 0 is 65535, the vocabulary has"):
        verify_group(lock, "web.en", str(folder))
    (folder / "web.en.bin").write_bytes(good)
    (folder / "web.en.documents.parquet").write_bytes((folder / "web.fr.documents.parquet").read_bytes())
    with pytest.raises(StaleDataError, match=r"does not describe the \.idx file"):
        verify_group(lock, "web.en", str(folder))


def test_verification_only_reads_and_compares_the_lock(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    lock, _ = write(run)
    before = sorted(Path(run).rglob("*"))
    folder, tokenizer = Path(run) / "mixture", f"{run}/tokenizer/tokenizer.json"
    verify_mixture(str(folder), tokenizer, corpus=lock.corpus, tokenizer=lock.tokenizer)
    assert sorted(Path(run).rglob("*")) == before
    write_lock(str(folder / NAME), replace(lock, seed=lock.seed + 1))
    with pytest.raises(StaleDataError, match="the lock is not the one that the manifest describes"):
        verify_mixture(str(folder), tokenizer, corpus=lock.corpus, tokenizer=lock.tokenizer)


def test_a_tokenizer_of_another_corpus_is_mentioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path)
    path = tmp_path / "tokenizer" / "manifest.json"
    corpus = read_manifest(f"{run}/corpus").fingerprint
    for trained_on in (corpus, "0ther" * 6):
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "inputs": {"corpus": trained_on}}))
        write_mixture(recipe(), run, Counting(), Progress())
        said = "".join(capsys.readouterr())
        assert ("trained on another corpus (0ther0ther0t)" in said and corpus[:12] in said) is (trained_on != corpus)


def test_long_and_strange_group_names(tmp_path: Path) -> None:
    languages = ["x" * 240, "x" * 239 + "y", "é" * 200, "\x1b[31m[red]"]
    rows: list[Row] = [(f"d{n}", "the lazy dog " * 9, "web", name) for n, name in enumerate(languages)]
    run = write_run(tmp_path, {"web-0": rows})
    lock, _ = write(run)
    assert set(lock.groups) == {f"web.{name}" for name in languages}
    assert len({group.file for group in lock.groups.values()}) == 4
    assert max(len(group.file) for group in lock.groups.values()) == 200
    planned = CliRunner().invoke(app, ["plan", "--run", run, "--tokens", "100000"]).stdout
    assert "\x1b" not in planned and r"web.\x1b[31m[red]" in planned


def test_commands(tmp_path: Path) -> None:
    run, runner = write_run(tmp_path), CliRunner()
    done = runner.invoke(app, ["write", "--recipe", _recipe_file(tmp_path), "--run", run, "--workers", "1", "--quiet"])
    assert done.exit_code == 0 and "5 groups" in done.stdout, done.output
    planned = runner.invoke(app, ["plan", "--run", run, "--tokens", "100000"])
    assert planned.exit_code == 0 and "web.und" in planned.stdout and "warning: web.hi would be read" in planned.stdout
    verified = runner.invoke(app, ["verify", "--run", run])
    assert verified.exit_code == 0 and "verified: 5 groups, 48 documents" in verified.stdout
    wrong = subprocess.run(
        [sys.executable, "-m", "mixtures", "plan", "--run", str(tmp_path / "nowhere")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ") and "Traceback" not in wrong.stderr


def test_recipes(tmp_path: Path) -> None:
    assert load_mixture_recipe("roots").weights.rule == "preset"
    assert load_mixture_recipe("massivetext").sequence_length == 2048
    mine = tmp_path / "mine.yaml"
    for text, message in (
        (
            "mixture:\n  sequence_lenght: 3\n",
            r"mine\.yaml:2: unknown key 'sequence_lenght'.*Did you mean 'sequence_length'",
        ),
        ("mixture:\n  weights: {rule: temperature, alpha: -1}\n", r"mine\.yaml:2: mixture\.weights.*alpha"),
        ("mixture:\n  split: {method: dice}\n", r"mine\.yaml:2: mixture\.split"),
        ("mixture:\n  variant: other\n", "bigscience"),
    ):
        mine.write_text(text, "utf-8")
        with pytest.raises(RecipeError, match=message):
            load_mixture_recipe(str(mine))


def test_index_arrays_of_other_data_are_deleted(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    write(run)
    path, cache = f"{run}/mixture/{NAME}", Path(run) / "mixture" / "cache"
    BlendedDataset(path, "train", 30)
    before = sorted(file.name for file in cache.iterdir())
    left_over, new = cache / "order-cut-document.npy", cache / "order-new-document.npy"
    left_over.write_bytes(b"of a run that was killed")
    os.utime(left_over, (0, 0))
    new.write_bytes(b"of a run that is building")
    write(run)
    assert sorted(file.name for file in cache.iterdir()) == sorted([*before, new.name])
    new.unlink()
    write(run, weights={"rule": "temperature", "alpha": 0.1})  # the orders stay, the blend goes
    left = sorted(file.name for file in cache.iterdir())
    assert left == [name for name in before if name.startswith("order")] != before
    write(run, split={"method": "hash", "share": 0.3})
    assert list(cache.iterdir()) == []
    assert len(BlendedDataset(path, "train", 30)) == 30
