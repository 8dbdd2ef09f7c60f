"""Removal carried into a mixture: the same bytes as encoding anew, or the same places with other tokens."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import mixtures.removal as removal
from mixtures.__main__ import app
from mixtures.dataset import BlendedDataset
from mixtures.indexed import IndexedReader
from mixtures.lineage import find_documents, horizon_of, samples_of
from mixtures.lock import NAME, read_lock
from mixtures.patch import Way
from mixtures.removal import remove_documents
from mixtures.verify import verify_mixture
from roots_pipeline.core.errors import EmptyOutputError, RootbloomError, StaleDataError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from tests.mixtures.build import build_mixture, numbered_groups
from tests.mixtures.small_run import Row, mixed_shards, write_corpus, write_run
from tests.mixtures.test_write import Counting, files_of, write
from tokenizer.encode import Encoder

GONE = {"w3", "w4", "w19", "w39", "c2", "forged"}


def without(shards: dict[str, list[Row]], ids: set[str]) -> dict[str, list[Row]]:
    return {name: [row for row in rows if row[0] not in ids] for name, rows in shards.items()}


def remove(run: str, way: Way, **asked: Any) -> removal.Removed:
    engine = Counting()
    done = remove_documents(run, way, engine, Progress(quiet=True), **asked)
    assert engine.asked == []  # nothing is encoded again
    return done


def texts_of(run: str) -> dict[str, list[str]]:
    """Decoded documents by group."""
    encoder = Encoder.from_file(f"{run}/tokenizer/tokenizer.json")
    lock = read_lock(f"{run}/mixture/{NAME}")
    readers = {name: IndexedReader(f"{run}/mixture/{group.file}") for name, group in lock.groups.items()}
    return {
        name: [encoder.decode(tokens, skip_special_tokens=False) for tokens in map(reader.get, range(len(reader)))]
        for name, reader in readers.items()
    }


def check(run: str) -> None:
    manifests = [read_manifest(f"{run}/{step}").fingerprint for step in ("corpus", "tokenizer")]
    verify_mixture(f"{run}/mixture", f"{run}/tokenizer/tokenizer.json", corpus=manifests[0], tokenizer=manifests[1])


def test_explain_finds_the_span_and_exactly_the_samples_that_read_it(run: str) -> None:
    lock = read_lock(f"{run}/mixture/{NAME}")
    folder = f"{run}/mixture"
    horizon = horizon_of(lock, run, samples=150)
    encoder = Encoder.from_file(f"{run}/tokenizer/tokenizer.json")
    rows = {row[0]: row for rows in mixed_shards().values() for row in rows}
    places = find_documents(lock, folder, rows)
    assert sorted(place.id for place in places) == sorted(rows)
    dataset = BlendedDataset(f"{folder}/{NAME}", "train", 150)
    reads = [(dataset.location(number)[0], {span.sequence for span in dataset.spans(number)}) for number in range(150)]
    for place, numbers in zip(places, samples_of(places, folder, horizon), strict=True):
        tokens = IndexedReader(f"{folder}/{place.file}").tokens[place.offset : place.offset + place.tokens]
        assert encoder.decode(tokens) == rows[place.id][1] and tokens[-1] == lock.end_of_text
        assert numbers == [
            number for number, (group, held) in enumerate(reads) if group == place.group and place.sequence in held
        ]
        assert place.side == "train" or numbers == []


@pytest.mark.parametrize("order", [([0], [3]), ([0, 1], [3, 0, 0, 5]), ([2, 0], [1, 0, 9, 1])])
def test_samples_that_hold_a_document_by_brute_force(tmp_path: Path, order: Any) -> None:
    lengths = order[1] * 3
    path = build_mixture(tmp_path, numbered_groups({"a.en": lengths}), sequence_length=2,
                         split={"method": "range", "train": "0:1", "validation": "0.9:1"})  # fmt: skip
    dataset = BlendedDataset(path, "train", 20)
    held = [set(dataset[number].tolist()) for number in range(20)]
    reader = dataset.groups[0].reader
    for sequence in range(len(reader)):
        own = set(reader[sequence].tolist())
        assert dataset.containing("a.en", [sequence]).tolist() == [n for n in range(20) if held[n] & own]


def test_rewriting_gives_the_bytes_of_encoding_anew(run: str, tmp_path: Path) -> None:
    before = texts_of(run)
    write_corpus(tmp_path / "corpus", without(mixed_shards(), GONE))
    done = remove(run, "rewrite")
    assert {place.id for place in done.places} == GONE
    after = files_of(run)
    noted = json.loads(after.pop("removed.json"))
    assert {row["id"] for row in noted[0]["documents"]} == GONE
    check(run)
    other = write_run(tmp_path / "other", without(mixed_shards(), GONE))
    write(other)
    assert after == files_of(other)
    left = texts_of(run)
    removed = {name: [t for t in texts if t not in left[name]] for name, texts in before.items()}
    assert sum(map(len, removed.values())) > 0
    assert all("forged" not in name for name in left)
    # The write step sees nothing left to do, and a second removal neither.
    assert write(run)[1] == 0 and remove(run, "rewrite").places == []


def test_masking_keeps_every_other_sample(run: str, tmp_path: Path) -> None:
    lock = read_lock(f"{run}/mixture/{NAME}")
    before = [BlendedDataset(f"{run}/mixture/{NAME}", "train", 150)[number] for number in range(150)]
    write_corpus(tmp_path / "corpus", without(mixed_shards(), GONE))
    done = remove(run, "mask", samples=150)
    used = {number for numbers in done.samples for number in numbers}
    assert 0 < len(used) < 150
    dataset = BlendedDataset(f"{run}/mixture/{NAME}", "train", 150)
    pad = Encoder.from_file(f"{run}/tokenizer/tokenizer.json").special_ids["<pad>"]
    for number in range(150):
        changed = dataset[number] != before[number]
        assert number in used or not changed.any()
        assert np.all(dataset[number][changed] == pad)
    for group in lock.groups.values():
        assert len(IndexedReader(f"{run}/mixture/{group.file}")) == group.documents
    for place in done.places:
        tokens = IndexedReader(f"{run}/mixture/{place.file}")[place.sequence]
        assert set(tokens[:-1].tolist()) <= {pad} and tokens[-1] == lock.end_of_text
        table = pq.read_table(f"{run}/mixture/{place.file}.documents.parquet")
        assert table.column("id")[place.sequence].as_py() == f"removed:{place.sequence}"
    check(run)
    assert write(run)[1] == 0  # the write step keeps the masked files
    # Masked documents are not masked again, others are added to them.
    write_corpus(tmp_path / "corpus", without(mixed_shards(), GONE | {"w0"}))
    assert [place.id for place in remove(run, "mask").places] == ["w0"]
    assert len(json.loads(Path(run, "mixture", "removed.json").read_text())) == 2
    check(run)


@pytest.mark.parametrize("way", ["rewrite", "mask"])
@pytest.mark.parametrize("moment", ["patch_group", "note_files", "_note_removed", "write_mixture", "replace"])
def test_killed_anywhere_the_next_call_completes_it(
    run: str, tmp_path: Path, way: Way, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpus(tmp_path / "corpus", without(mixed_shards(), GONE))
    calls = []
    original = os.replace if moment == "replace" else getattr(removal, moment)

    def dies(*given: Any, **named: Any) -> Any:
        calls.append(given)
        if moment == "replace":
            killed = "/.work/removal/" in str(given[0]) and str(given[1]).endswith(".idx")
        else:
            killed = len(calls) == (2 if moment == "patch_group" else 1)
        if killed:
            raise KeyboardInterrupt
        return original(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os if moment == "replace" else removal, moment, dies)
        with pytest.raises(KeyboardInterrupt):
            remove_documents(run, way, Counting(), Progress(quiet=True))
    remove(run, way)
    check(run)
    assert not GONE & {row["id"] for entry in Path(run, "mixture").glob("*.documents.parquet")
                       for row in pq.read_table(entry).to_pylist()}  # fmt: skip
    noted = json.loads(Path(run, "mixture", "removed.json").read_text())
    assert [{row["id"] for row in entry["documents"]} for entry in noted] == [GONE]


def test_a_whole_group_and_a_whole_mixture(run: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", without(mixed_shards(), {"hindi"}))
    remove(run, "rewrite")
    assert "web.hi" not in read_lock(f"{run}/mixture/{NAME}").groups
    assert not list(Path(run, "mixture").glob("web.hi*"))
    check(run)
    write_corpus(tmp_path / "corpus", {"web-00000": []})
    with pytest.raises(EmptyOutputError, match="no document would be left"):
        remove(run, "rewrite")


def test_what_is_no_removal_is_refused(run: str, tmp_path: Path) -> None:
    with pytest.raises(StaleDataError, match="python -m mixtures write"):
        remove(write_run(tmp_path / "unwritten"), "rewrite")
    shards = mixed_shards()

    def refused(text: str, **changed: list[Row]) -> None:
        other = {name.replace("_", "-"): rows for name, rows in changed.items()}
        write_corpus(tmp_path / "corpus", {**shards, **other})
        before = files_of(run)
        with pytest.raises(RootbloomError, match=text):
            remove(run, "rewrite")
        assert files_of(run) == before

    refused("other documents of web.en", web_00000=[("new", "text", "web", "en"), *shards["web-00000"]])
    refused("a group 'web.xx'", web_00000=[*shards["web-00000"], ("new", "text", "web", "xx")])
    refused("other documents", web_00000=shards["web-00000"][::-1])
    first = shards["web-00000"][0]
    refused("another text", web_00000=[(first[0], "changed", *first[2:]), *shards["web-00000"][1:]])


def test_commands(run: str, tmp_path: Path) -> None:
    runner = CliRunner()
    found = runner.invoke(app, ["explain", "w7", "--run", run, "--samples", "60"])
    assert found.exit_code == 0 and "tokens" in found.stdout and "of 60 samples of 16 tokens" in found.stdout
    as_json = json.loads(runner.invoke(app, ["explain", "w7", "--run", run, "--json"]).stdout)
    assert as_json["places"][0]["id"] == "w7" and "one pass" in as_json["horizon"]["reason"]
    text = runner.invoke(app, ["explain", "hindi", "--run", run, "--text"])
    assert text.stdout == "नमस्ते दुनिया। 你好，世界。"
    write_corpus(tmp_path / "corpus", without(mixed_shards(), GONE))
    command = ["remove", "--run", run, "--quiet", "--workers", "1"]
    done = runner.invoke(app, command)
    assert "6 documents with" in done.stdout and "had used them" in done.stdout
    assert "holds no document that the corpus does not hold" in runner.invoke(app, command).stdout
    gone = runner.invoke(app, ["explain", "w3", "--run", run])
    assert gone.exit_code != 0 and "It was removed" in str(gone.exception)
