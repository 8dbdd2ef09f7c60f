"""Removed documents are gone from every table and every later run; everything else stays as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from roots_pipeline import removal
from roots_pipeline.core.errors import RecipeError, StaleDataError
from roots_pipeline.removal import read_names, remove_documents
from roots_pipeline.verify import verify_corpus
from tests.pipeline.test_run import WORDS, digest, rows, run, write_lines, write_recipe


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    """Two shards; `a1` is a copy of `a0`, `a2` is too short."""
    write_lines(tmp_path / "in" / "a.jsonl", ["one two three four", "one two three four", "x", "five six seven"], "a")
    write_lines(tmp_path / "in" / "b.jsonl", ["eight nine ten", "eleven twelve thirteen"], "b")
    return write_recipe(tmp_path, [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "in")}], WORDS, shard_size=1,
                        rejected_text="full")


def test_what_is_removed_is_nowhere_and_stays_away(tmp_path: Path, recipe: str) -> None:
    folder = tmp_path / "out"
    run(recipe, folder)
    before = {row["id"]: row for part in ("documents", "rejected") for row in rows(folder, part)}
    as_it_was = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    would = remove_documents(str(folder), ids=["a0", "a1", "nobody"], dry_run=True)
    assert as_it_was == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = remove_documents(str(folder), ids=["a0", "a1", "nobody"])
    assert would == done and (done.documents, done.rejected, done.unknown) == (1, 1, ("nobody",))
    kept = {row["id"]: row for row in rows(folder, "documents")}
    assert kept == {name: before[name] for name in ("a3", "b0", "b1")}
    rejected = {row["id"]: row for row in rows(folder, "rejected")}
    assert rejected["a1"]["text"] is None and rejected["a1"]["verdict"] == "exact_duplicates"
    assert rejected["a2"] == before["a2"]
    assert b"one two three four" not in b"".join(
        pq.read_table(path).column("text").combine_chunks().buffers()[2] or b""
        for path in folder.rglob("*.parquet") if "text" in pq.read_schema(path).names)
    assert verify_corpus(str(folder)).problems == []

    patched = digest(folder)
    manifest, _ = run(recipe, folder)
    assert digest(folder) == patched
    assert manifest.counts["removed"] == 1 and manifest.counts["kept"] == 3 and manifest.counts["rejected"] == 2
    assert run(recipe, folder)[1] == 0


def test_removal_by_url_of_a_document_in_the_other_shard(tmp_path: Path) -> None:
    lines = ['{"id": "a", "url": "https://x.example/1", "text": "one two three"}',
             '{"id": "b", "url": "https://x.example/2", "text": "four five six"}']
    for number, line in enumerate(lines):
        (tmp_path / f"{number}.jsonl").write_text(line + "\n")
    recipe = write_recipe(tmp_path, [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "*.jsonl")}], WORDS,
                          shard_size=1)
    run(recipe, tmp_path / "out")
    untouched = (tmp_path / "out" / "documents" / "s-00000.parquet").read_bytes()
    assert remove_documents(str(tmp_path / "out"), urls=["https://x.example/2"]).documents == 1
    assert [row["id"] for row in rows(tmp_path / "out", "documents")] == ["a"]
    assert (tmp_path / "out" / "documents" / "s-00000.parquet").read_bytes() == untouched


def test_removals_add_up(tmp_path: Path, recipe: str) -> None:
    run(recipe, tmp_path / "out")
    remove_documents(str(tmp_path / "out"), ids=["a3"])
    remove_documents(str(tmp_path / "out"), ids=["b0"])
    manifest, _ = run(recipe, tmp_path / "out")
    assert [row["id"] for row in rows(tmp_path / "out", "documents")] == ["a0", "b1"]
    assert manifest.counts["removed"] == 2


def test_mistakes_are_sentences(tmp_path: Path, recipe: str) -> None:
    with pytest.raises(StaleDataError, match="no finished result"):
        remove_documents(str(tmp_path / "out"), ids=["a0"])
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(RecipeError, match="empty"):
        read_names(str(tmp_path / "empty"))
    with pytest.raises(RecipeError, match="cannot be read"):
        read_names(str(tmp_path / "nowhere"))
    run(recipe, tmp_path / "corpus")
    for extra in ([], ["--ids", str(tmp_path / "nowhere")]):
        done = subprocess.run([sys.executable, "-m", "roots_pipeline", "remove", "--run", str(tmp_path), *extra],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_a_removal_that_was_killed_half_way_is_finished_by_the_next_run(
    tmp_path: Path, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(recipe, tmp_path / "whole")
    remove_documents(str(tmp_path / "whole"), ids=["a0", "b0"])
    run(recipe, tmp_path / "cut")
    with monkeypatch.context() as patched:
        patched.setattr(removal, "_write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            remove_documents(str(tmp_path / "cut"), ids=["a0", "b0"])
    with pytest.raises(StaleDataError, match=r"bytes instead of .* again"):
        verify_corpus(str(tmp_path / "cut"))
    run(recipe, tmp_path / "cut")
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
    assert verify_corpus(str(tmp_path / "cut")).problems == []
