"""Runs of a whole recipe: nothing is lost, nothing is done twice, mistakes are one sentence."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import EmptyOutputError, RecipeError, SourceError, StorageError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import lock_folder
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus

EXACT = [{"stage": "exact_duplicates"}]
LIMIT = {"stage": "thresholds", "preset": "", "limits": {"default": {"word_count": [3, None]}}}
WORDS = [{"stage": "massivetext"}, LIMIT, *EXACT]


def write_lines(path: Path, texts: list[str], prefix: str = "d") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [orjson.dumps({"id": f"{prefix}{n}", "text": text}) for n, text in enumerate(texts)]
    path.write_bytes(b"\n".join(lines) + b"\n")


def write_recipe(folder: Path, sources: list[dict[str, Any]], stages: list[dict[str, Any]], **more: Any) -> str:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({"corpus": {"sources": sources, "stages": stages, **more}}))
    return str(path)


def run(recipe: str, folder: Path, workers: int = 1) -> tuple[Manifest, int]:
    with LocalEngine(workers) as engine:
        manifest = run_corpus(load_corpus_recipe(recipe), str(folder), engine, Progress(quiet=True))
        return manifest, engine.tasks_run


def rows(folder: Path, part: str) -> list[dict[str, Any]]:
    files = sorted((folder / part).glob("*.parquet"))
    return [row for path in files for row in pq.read_table(path).to_pylist()]


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".work" not in path.parts and path.name not in ("history.jsonl", ".lock")
    }


@pytest.fixture
def many(tmp_path: Path) -> str:
    """Six files with duplicates within and across them; each becomes a shard."""
    dice = random.Random(3)
    for number in range(6):
        texts = [" ".join(dice.choice(["one", "two", "three", "four", "five"]) for _ in range(dice.randint(1, 6)))
                 for _ in range(40)]
        write_lines(tmp_path / "in" / f"{number}.jsonl", texts, f"f{number}-")
    return write_recipe(tmp_path, [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "in")}], WORDS, shard_size=1)


def test_every_document_is_kept_or_rejected_with_a_kept_twin(tmp_path: Path, many: str) -> None:
    manifest, _ = run(many, tmp_path / "out")
    good, bad = rows(tmp_path / "out", "documents"), rows(tmp_path / "out", "rejected")
    assert len(good) + len(bad) == 240 == manifest.counts["read"]
    assert len({row["text"] for row in good}) == len(good)
    assert all(row["word_count"] >= 3 for row in good)
    kept = {row["id"]: row["text"] for row in good}
    assert {row["verdict"] for row in bad} == {"word_count", "exact_duplicates"}
    for row in bad:
        if row["verdict"] == "exact_duplicates":
            assert kept[row["cause"]] == row["text"]
            assert row["cause"] < row["id"]
        else:
            assert row["word_count"] < 3 and row["cause"] is None


def test_workers_do_not_change_a_byte_and_shards_do_not_change_a_row(tmp_path: Path, many: str) -> None:
    run(many, tmp_path / "one", 1)
    for workers in (2, 4):
        run(many, tmp_path / str(workers), workers)
        assert digest(tmp_path / str(workers)) == digest(tmp_path / "one")
    text = Path(many).read_text().replace("shard_size: 1", "shard_size: 1MB")
    Path(many).write_text(text)
    run(many, tmp_path / "big", 1)
    assert rows(tmp_path / "big", "documents") == rows(tmp_path / "one", "documents")
    assert rows(tmp_path / "big", "rejected") == rows(tmp_path / "one", "rejected")


def test_a_second_run_does_nothing_and_a_changed_threshold_reads_no_text(tmp_path: Path, many: str) -> None:
    _, first = run(many, tmp_path / "out")
    before = digest(tmp_path / "out")
    assert first == 6 + 6 + 6 + 1 + 6  # hash, read, judge, resolve, write
    assert run(many, tmp_path / "out")[1] == 0
    assert digest(tmp_path / "out") == before

    read = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / ".work" / "0-read").iterdir()}
    Path(many).write_text(Path(many).read_text().replace("- 3\n", "- 4\n"))
    manifest, again = run(many, tmp_path / "out")
    assert again == 6 + 1 + 6
    assert read == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / ".work" / "0-read").iterdir()}
    assert all(row["word_count"] >= 4 for row in rows(tmp_path / "out", "documents"))
    run(many, tmp_path / "fresh")
    assert digest(tmp_path / "fresh") == digest(tmp_path / "out")
    assert manifest.counts["kept"] < 240


def test_a_changed_file_recomputes_its_own_shard(tmp_path: Path, many: str) -> None:
    run(many, tmp_path / "out")
    write_lines(tmp_path / "in" / "3.jsonl", ["one two three four five six"] * 2, "f3-")
    _, ran = run(many, tmp_path / "out")
    assert ran <= 1 + 1 + 1 + 1 + 6  # hash, read, judge, resolve, write
    run(many, tmp_path / "fresh")
    assert digest(tmp_path / "fresh") == digest(tmp_path / "out")


def test_files_of_shards_that_are_gone_disappear(tmp_path: Path, many: str) -> None:
    run(many, tmp_path / "out")
    (tmp_path / "in" / "5.jsonl").unlink()
    run(many, tmp_path / "out")
    assert len(list((tmp_path / "out" / "documents").iterdir())) == 5
    run(many, tmp_path / "fresh")
    assert digest(tmp_path / "fresh") == digest(tmp_path / "out")


def test_kill_at_random_moments_ends_with_the_same_bytes(tmp_path: Path, many: str) -> None:
    dice = random.Random(5)
    command = [sys.executable, "-m", "roots_pipeline", "run", "--recipe", many, "--workers", "2", "--quiet", "--run"]
    began = time.monotonic()
    subprocess.run([*command, str(tmp_path / "calm")], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    for _ in range(4):
        process = subprocess.Popen([*command, str(tmp_path / "stormy")], start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(seconds / 3, seconds))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, str(tmp_path / "stormy")], check=True, stdout=subprocess.DEVNULL)
    assert digest(tmp_path / "stormy" / "corpus") == digest(tmp_path / "calm" / "corpus")


def test_bad_files_give_their_good_records_and_a_count(tmp_path: Path, sample: Path) -> None:
    good = {
        "truncated.jsonl.gz": (224, 1), "bad_utf8.jsonl": (4, 1), "not_json.jsonl": (0, 7),
        "missing_text.jsonl": (3, 3), "text_is_number.jsonl": (2, 6), "nul_bytes.jsonl": (3, 2),
        "empty.jsonl": (0, 0), "deep_nesting.jsonl": (2, 2),
        "bom.jsonl": (4, 0), "crlf.jsonl": (5, 0), "lone_surrogate.jsonl": (3, 2), "truncated.parquet": (0, 1),
        "not_gzip.jsonl.gz": (6, 0), "long.jsonl": (1, 0),
    }
    write_lines(tmp_path / "long.jsonl", ["a" * 3_000_000])
    assert {path.name for path in (sample / "bad").iterdir()} - {"README.md"} == set(good) - {"long.jsonl"}
    sources = [
        {"name": name.split(".")[0].replace("_", "-") + name[-1], "kind": "parquet" if "parquet" in name else "jsonl",
         "path": str(tmp_path / name if name == "long.jsonl" else sample / "bad" / name)}
        for name in good
    ]
    recipe = write_recipe(tmp_path, sources, [])
    command = [sys.executable, "-m", "roots_pipeline", "run", "--recipe", recipe, "--run", str(tmp_path), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "25 records could not be read" in done.stdout
    manifest = orjson.loads((tmp_path / "corpus" / "manifest.json").read_bytes())
    read = dict.fromkeys((entry["name"] for entry in sources), 0)
    for source, _, _, documents, _ in manifest["counts"]["by_source_language_verdict"]:
        read[source] += documents
    assert list(read.values()) == [documents for documents, _ in good.values()]
    quarantined = rows(tmp_path / "corpus", "quarantine")
    for name, (_, bad) in good.items():
        mine = [row for row in quarantined if row["file"].endswith("/" + name)]
        assert len(mine) == bad, name
        assert all(row["reason"] for row in mine)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"sources": [{"name": "s", "kind": "jsonl", "path": "nowhere/x.jsonl"}]}, SourceError, ["nowhere", "exist"]),
        ({"sources": [{"name": "s", "kind": "jsonk", "path": "x"}]}, RecipeError, ["'jsonk'", "'jsonl'"]),
        ({"sources": [{"name": "s", "kind": "jsonl", "path": "x", "lang": 1}]}, RecipeError, ["'lang'", "'language'"]),
        ({"stages": [{"stage": "exact_duplicate"}]}, RecipeError, ["'exact_duplicate'", "'exact_duplicates'"]),
        ({"stages": [{"stage": "exact_duplicates", "ignor": 1}]}, RecipeError, ["'ignor'", "'ignore'"]),
        ({"stages": [{"stage": "exact_duplicates", "ignore": "x"}]}, RecipeError, ["ignore", "'x'"]),
        ({"stages": [{"stage": "exact_duplicates", "groups": ["wbe"]}]}, RecipeError, ["'wbe'", "'web'"]),
        ({"shard_size": "many"}, RecipeError, ["shard_size", "'many'"]),
        ({"shard_size": "1" + "0" * 400 + "GB"}, RecipeError, ["shard_size"]),
        ({"shard_size": True}, RecipeError, ["shard_size"]),
        ({"stages": [{"stage": "exact_duplicates", "groups": []}]}, RecipeError, ["groups"]),
        ({"sources": [{"name": "s", "kind": "jsonl", "path": ""}]}, RecipeError, ["path"]),
        ({"sources": [{"name": "a b", "kind": "jsonl", "path": "x"}]}, RecipeError, ["'a b'", "letters"]),
        ({"sources": [{"name": "s", "kind": "jsonl", "path": "x", "root": "y"}]}, RecipeError, ["'root'"]),
        ({"sources": [{"name": "s", "kind": "jsonl", "path": "x", "language": False}]}, RecipeError, ["in quotes"]),
        ({"maximum_bad_shares": 1}, RecipeError, ["'maximum_bad_shares'", "'maximum_bad_share'"]),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, many: str, change: dict[str, Any], kind: type[Exception],
                                   words: list[str]) -> None:
    recipe = yaml.safe_load(Path(many).read_text())
    recipe["corpus"].update(change)
    Path(many).write_text(yaml.safe_dump(recipe))
    with pytest.raises(kind) as caught:
        run(many, tmp_path / "out")
    for word in words:
        assert word in str(caught.value)
    command = [sys.executable, "-m", "roots_pipeline", "run", "--recipe", many, "--run", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_dropping_everything_is_an_error_unless_wanted(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", ["one", "two"])
    sources = [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "a.jsonl")}]
    with pytest.raises(EmptyOutputError, match="all 2 documents were dropped \\(word_count 2\\)"):
        run(write_recipe(tmp_path, sources, WORDS), tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()
    manifest, _ = run(write_recipe(tmp_path, sources, WORDS, allow_empty=True), tmp_path / "out")
    assert manifest.counts["kept"] == 0


def test_too_many_bad_records_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "fine words here"}\nnot json\n')
    sources = [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "a.jsonl")}]
    with pytest.raises(SourceError, match="1 of 2 records cannot be read"):
        run(write_recipe(tmp_path, sources, EXACT), tmp_path / "out")
    assert run(write_recipe(tmp_path, sources, EXACT, maximum_bad_share=0.5), tmp_path / "out")[0].counts["kept"] == 1


def test_two_runs_on_one_folder_are_refused(tmp_path: Path, many: str) -> None:
    with lock_folder(str(tmp_path / "out")), pytest.raises(StorageError, match="another run"):
        run(many, tmp_path / "out")


def test_a_stage_file_that_was_cut_is_made_again(tmp_path: Path, many: str) -> None:
    run(many, tmp_path / "out")
    before = digest(tmp_path / "out")
    for victim in ("documents/s-00001.parquet", ".work/0-read/s-00002.parquet"):
        path = tmp_path / "out" / victim
        path.write_bytes(path.read_bytes()[:-7])
    run(many, tmp_path / "out")
    assert digest(tmp_path / "out") == before


def test_a_run_folder_named_in_another_way_is_the_same_run(tmp_path: Path, many: str,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    run(many, tmp_path / "out")
    before = digest(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    manifest, ran = run(many, Path("out"))
    assert ran == 0 and set(manifest.files) == {f"{part}/s-{n:05d}.parquet" for n in range(6)
                                               for part in ("documents", "rejected")}
    assert digest(tmp_path / "out") == before
