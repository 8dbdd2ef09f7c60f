"""The whole step on run folders: files, manifest, resuming, recipes, errors, commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from roots_pipeline.core.errors import EmptyOutputError, RecipeError, StaleDataError, TokenizerError
from roots_pipeline.core.manifest import read_manifest, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import hash_file
from roots_pipeline.core.tasks import Task, finished_result, run_task
from tests.tokenizer import peer
from tests.tokenizer.corpora import sample_texts
from tests.tokenizer.test_count import Row, expected, rows_of, write_shard
from tokenizer import count_corpus as count_module
from tokenizer.__main__ import app
from tokenizer.config import TokenizerRecipe, load_tokenizer_recipe
from tokenizer.count_corpus import count_corpus
from tokenizer.counts_file import read_counts
from tokenizer.encode import Encoder
from tokenizer.train import train_tokenizer

WRITTEN = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "counts.parquet", "manifest.json")


class RecordingEngine:
    """Runs tasks here and notes which ones had to run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        results = []
        for task in tasks:
            if (result := finished_result(task)) is None:
                self.ran.append(task.name)
                result = run_task(task)
            results.append(result)
        return results


def write_corpus(run: Path, shards: dict[str, list[Row]]) -> None:
    folder = run / "corpus" / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, rows in shards.items():
        path = write_shard(folder / f"{name}.parquet", rows)
        files[f"documents/{name}.parquet"] = {"size": os.path.getsize(path), "xxh3": hash_file(path)}
    marks = "".join(str(facts["xxh3"]) for facts in files.values())
    texts = [text.encode() for rows in shards.values() for text, _ in rows]
    counts = {"kept": len(texts), "kept_bytes": sum(map(len, texts))}
    write_manifest(str(run / "corpus"), "corpus", config={}, inputs={}, counts=counts, fingerprint=marks, files=files)


def shards_of(sample: Path) -> dict[str, list[Row]]:
    texts = sample_texts(sample)[:90]
    rows: list[Row] = [(text, ("en", "hi", None)[number % 3]) for number, text in enumerate(texts)]
    return {"web-00000": rows[:40], "web-00001": rows[40:80], "code-00000": rows[80:]}


def recipe(**changes: Any) -> TokenizerRecipe:
    return TokenizerRecipe(**{"vocab_size": 1500, "tensor_parallel": 4, **changes})


def train(run: Path, engine: RecordingEngine | None = None, **changes: Any) -> dict[str, bytes]:
    train_tokenizer(recipe(**changes), str(run), engine or RecordingEngine(), Progress(quiet=True))
    return {name: (run / "tokenizer" / name).read_bytes() for name in WRITTEN}


@pytest.fixture
def run(tmp_path: Path, sample: Path) -> Path:
    write_corpus(tmp_path, shards_of(sample))
    return tmp_path


def test_the_step_gives_hugging_faces_tokenizer(run: Path, sample: Path) -> None:
    train(run)
    rows = [row for shard in shards_of(sample).values() for row in shard]
    theirs = peer.train([text for text, _ in rows], 1500)
    path = run / "tokenizer" / "tokenizer.json"
    assert json.loads(path.read_text("utf-8")) == json.loads(theirs.to_str())
    counts = pa.concat_tables(read_counts(str(run / "tokenizer" / "counts.parquet")))
    assert rows_of(counts) == expected(rows)


def test_the_manifest_says_what_was_done(run: Path, sample: Path) -> None:
    train(run)
    manifest = read_manifest(str(run / "tokenizer"))
    counts = manifest.counts
    assert (counts["vocab_size"], counts["padded_vocab_size"], counts["spare"]) == (1500, 1536, 36)
    assert manifest.config["tensor_parallel"] == 4 and set(manifest.files) == {*WRITTEN} - {"manifest.json"}
    rows = [row for shard in shards_of(sample).values() for row in shard]
    encoder = Encoder.from_file(str(run / "tokenizer" / "tokenizer.json"))
    for language in ("en", "hi", None):
        texts = [text for text, name in rows if name == language]
        size, tokens = sum(len(text.encode()) for text in texts), sum(len(encoder.encode(text)) for text in texts)
        name = language or "und"
        assert counts["bytes_per_token"][name] == pytest.approx(size / tokens, abs=1e-4)
        assert counts["languages"][name]["bytes"] == size


def test_the_same_run_again_does_nothing(run: Path) -> None:
    first = train(run)
    stamps = {path: path.stat().st_mtime_ns for path in (run / "tokenizer").iterdir() if path.name in WRITTEN}
    engine = RecordingEngine()
    assert train(run, engine) == first and engine.ran == []
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_only_what_changed_is_done_again(run: Path, sample: Path, tmp_path: Path) -> None:
    train(run)
    engine = RecordingEngine()
    smaller = train(run, engine, vocab_size=900)
    assert engine.ran == [] and read_manifest(str(run / "tokenizer")).counts["padded_vocab_size"] == 1024
    shards = shards_of(sample)
    shards["web-00001"] = shards["web-00001"][:-1]
    write_corpus(run, shards)
    changed = train(run, engine, vocab_size=900)
    assert engine.ran == ["count web-00001", "merge counts"] and changed["counts.parquet"] != smaller["counts.parquet"]
    write_corpus(tmp_path / "fresh", shards)
    fresh = train(tmp_path / "fresh", vocab_size=900)
    assert fresh == changed


def test_padding_alone_trains_nothing_anew(run: Path) -> None:
    train(run)
    before = read_manifest(str(run / "tokenizer"))
    stamp = (run / "tokenizer" / "tokenizer.json").stat().st_mtime_ns
    train(run, tensor_parallel=8)
    after = read_manifest(str(run / "tokenizer"))
    assert after.counts["padded_vocab_size"] == 2048 and after.fingerprint == before.fingerprint
    assert (run / "tokenizer" / "tokenizer.json").stat().st_mtime_ns == stamp


def test_a_damaged_file_is_written_again(run: Path) -> None:
    first = train(run)
    (run / "tokenizer" / "tokenizer.json").write_bytes(b"{}")
    (run / "tokenizer" / "counts.parquet").unlink()
    assert train(run) == first
    for name in ("tokenizer.json", "counts.parquet"):  # also if the size is the same
        path = run / "tokenizer" / name
        path.write_bytes(path.read_bytes()[:-9] + b"x" * 9)
        assert train(run) == first


def test_a_damaged_shard_is_not_counted(run: Path) -> None:
    path = run / "corpus" / "documents" / "web-00001.parquet"
    good = path.read_bytes()
    path.write_bytes(good[:99] + bytes([good[99] ^ 1]) + good[100:])
    message = r"web-00001\.parquet: its content is not what the manifest describes \(\w{12} instead of \w{12}\)"
    with pytest.raises(StaleDataError, match=message):
        train(run)


def test_merging_in_levels_gives_the_same_table(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = count_corpus(RecordingEngine(), str(run / "corpus"), str(tmp_path / "one"))
    monkeypatch.setattr(count_module, "_FAN_IN", 2)
    engine = RecordingEngine()
    levels = count_corpus(engine, str(run / "corpus"), str(tmp_path / "two"))
    assert "merge merge-1-00000" in engine.ran and levels.languages == whole.languages
    assert Path(levels.path).read_bytes() == Path(whole.path).read_bytes()


def test_a_source_may_be_called_like_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("merge-1-00000", "merge-1-00001", "merge-2-00000", "counts")
    shards: dict[str, list[Row]] = {name: [(f"text of {name}", "en")] for name in names}
    write_corpus(tmp_path, shards)
    monkeypatch.setattr(count_module, "_FAN_IN", 2)
    for _ in range(2):
        counted = count_corpus(RecordingEngine(), str(tmp_path / "corpus"), str(tmp_path / "tokenizer"))
        rows = [row for shard in shards.values() for row in shard]
        assert rows_of(pa.concat_tables(read_counts(counted.path))) == expected(rows)


def test_weights_move_the_vocabulary(run: Path) -> None:
    even = train(run)
    manifest = read_manifest(str(run / "tokenizer"))
    equal = train(run, language_weights={"en": 2, "hi": 2.0, "und": 2})
    assert equal["tokenizer.json"] == even["tokenizer.json"]
    train(run, language_weights={"en": 0.001, "und": 0.001})
    tilted = read_manifest(str(run / "tokenizer"))
    assert tilted.counts["bytes_per_token"]["hi"] > manifest.counts["bytes_per_token"]["hi"]
    assert tilted.counts["bytes_per_token"]["en"] < manifest.counts["bytes_per_token"]["en"]


def test_weights_count_like_copies_of_the_text(run: Path, sample: Path, tmp_path: Path) -> None:
    rows = [row for shard in shards_of(sample).values() for row in shard]
    copies = [row for row in rows for _ in range(3 if row[1] == "hi" else 2)]
    write_corpus(tmp_path / "copies", {"all": copies})
    weighted = train(run, language_weights={"hi": 1.5})
    copied = train(tmp_path / "copies")
    assert weighted["tokenizer.json"] == copied["tokenizer.json"]


def test_minimum_frequency_is_in_units_of_the_weights(run: Path) -> None:
    plain_run = train(run, minimum_frequency=3, vocab_size=1200)
    halves = train(run, minimum_frequency=3, vocab_size=1200, language_weights={"en": 1.0})
    assert plain_run["tokenizer.json"] == halves["tokenizer.json"]
    with pytest.raises(TokenizerError, match="at least 40 times"):
        train(run, minimum_frequency=40, vocab_size=5000)


def test_errors(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="set vocab_size to at most"):
        train(run, vocab_size=500_000)
    with pytest.raises(TokenizerError, match="smaller than vocab_size"):
        train(run, padded_vocab_size=1024)
    with pytest.raises(TokenizerError, match="holds no 'xx'"):
        train(run, language_weights={"xx": 1})
    with pytest.raises(StaleDataError, match="roots_pipeline run"):
        train(tmp_path / "nothing")
    write_corpus(tmp_path / "empty", {"a": [("", "en")]})
    with pytest.raises(EmptyOutputError, match="no text"):
        train(tmp_path / "empty")
    next((run / "corpus" / "documents").iterdir()).unlink()
    with pytest.raises(StaleDataError, match="is missing"):
        train(run)


def test_built_in_recipes() -> None:
    sizes = load_tokenizer_recipe("sample").sizes
    assert (sizes.vocab_size, sizes.padded_vocab_size, sizes.spare) == (7992, 8192, 200)
    assert load_tokenizer_recipe("smoke").sizes.padded_vocab_size == 1024


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vocab_sizes: 9", "Did you mean 'vocab_size'"),
        ("vocab_size: many", "vocab_size"),
        ("minimum_frequency: -1", "minimum_frequency"),
        (f"vocab_size: {10**23}", "vocab_size"),
        (f"minimum_frequency: {10**23}", "minimum_frequency"),
        (f"max_token_length: {2**31}", "max_token_length"),
        (f"tensor_parallel: {2**31}", "tensor_parallel"),
        ("max_token_length: 0", "max_token_length"),
        ("language_weights: {en: x}", r"language_weights\.en"),
    ],
)
def test_recipes_are_checked_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"tokenizer:\n  divisible_by: 64\n  {text}\n")
    with pytest.raises(RecipeError, match=message) as caught:
        load_tokenizer_recipe(str(path))
    assert caught.value.where == f"{path}:3"


def test_impossible_sizes_are_found_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("tokenizer:\n  padded_vocab_size: 8000\n")
    with pytest.raises(TokenizerError, match="Set it to 8,192"):
        load_tokenizer_recipe(str(path))


def command(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "tokenizer", *arguments]
    return subprocess.run(line, env=environment, capture_output=True, check=False)


def test_two_workers_and_another_hash_seed_give_the_same_bytes(run: Path, tmp_path: Path) -> None:
    here = train(run, vocab_size=1000, tensor_parallel=4, minimum_frequency=2)
    other = tmp_path / "other"
    (run / "corpus").rename(other.parent / "moved")
    other.mkdir()
    (other.parent / "moved").rename(other / "corpus")
    done = command("train", "--recipe", "smoke", "--run", str(other), "--workers", "2")
    assert done.returncode == 0 and b"1,000 tokens (1,024 rows of the embedding, 24 of them spare)" in done.stdout
    assert b'"event":"stage"' in done.stderr
    for name in set(WRITTEN) - {"manifest.json"}:
        assert (other / "tokenizer" / name).read_bytes() == here[name], name


def test_count_and_encode(run: Path) -> None:
    counted = CliRunner().invoke(app, ["count", "--run", str(run), "--workers", "1", "--quiet"])
    assert counted.exit_code == 0 and "90 documents" in counted.stdout and counted.stderr == ""
    train(run)
    encoder = Encoder.from_file(str(run / "tokenizer" / "tokenizer.json"))
    expected_ids = encoder.encode("a b</s>").tolist()
    for arguments, text in ((["a b</s>"], ""), (["-"], "a b</s>")):
        shown = CliRunner().invoke(app, ["encode", "--run", str(run), *arguments], input=text)
        assert list(map(int, shown.stdout.split())) == expected_ids
    shown = CliRunner().invoke(app, ["encode", "--run", str(run), "a.", "--show"])
    assert shown.stdout.splitlines()[1].split() == [str(encoder.encode(".")[0]), "b'.'"]


def test_a_dry_run_tells_the_sizes_and_writes_nothing(run: Path, sample: Path) -> None:
    words = ["train", "--recipe", "smoke", "--run", str(run), "--json", "--quiet"]
    would = json.loads(CliRunner().invoke(app, [*words, "--dry-run"]).stdout)
    assert not (run / "tokenizer").exists()
    texts = [text for shard in shards_of(sample).values() for text, _ in shard]
    assert would["documents"] == 90 and would["bytes"] == sum(len(text.encode()) for text in texts)
    assert would["padded_vocab_size"] == 1024 and would["dry_run"] is True
    done = json.loads(CliRunner().invoke(app, [*words, "--workers", "1"]).stdout)
    assert {name: done[name] for name in ("vocab_size", "spare", "merges", "path")} == {
        name: would[name] for name in ("vocab_size", "spare", "merges", "path")}


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    failed = command("encode", "--run", str(tmp_path), "a")
    assert failed.returncode == 2 and failed.stderr.startswith(b"error: ") and failed.stderr.count(b"\n") == 1
