"""Others' data sets as groups, a mixture as options of other trainers, and the corpus as a Hugging Face data set."""

from __future__ import annotations

import shlex
from pathlib import Path

import datasets
import numpy as np
import pytest
from typer.testing import CliRunner

from mixtures.__main__ import app
from mixtures.dataset import BlendedDataset
from mixtures.indexed import IndexedReader, indexed_writer
from mixtures.lock import NAME, read_lock
from mixtures.megatron_options import export_options
from roots_pipeline.core.errors import MixtureError, StaleDataError, StorageError
from roots_pipeline.core.storage import commit_file
from tests.mixtures.build import build_mixture, numbered_groups
from tests.mixtures.small_run import mixed_shards, write_corpus
from tests.mixtures.test_removal import check, remove, without
from tests.mixtures.test_write import write


def write_theirs(prefix: Path, top: int = 300) -> str:
    """A data set of another program: sequences without end of text, several in a document, one empty, int32."""
    lengths = np.array([20, 0, 31, 7, 40, 9, 12])
    tokens = np.random.RandomState(0).randint(5, top, int(lengths.sum()))
    with indexed_writer(str(prefix), np.int32, commit_file) as writer:
        writer.append(tokens, lengths, np.array([3, 0, 4]))
    return str(prefix)


def test_a_foreign_data_set_is_a_group(run: str, tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path / "theirs")
    lock, _ = write(run, foreign={"theirs.en": theirs})
    group = lock.groups["theirs.en"]
    assert (group.documents, group.tokens) == (7, 119) and group.weight > 0
    assert (Path(run) / "mixture" / "theirs.en.bin").is_symlink()
    check(run)
    dataset = BlendedDataset(f"{run}/mixture/{NAME}", "train", 40, groups=["theirs.en"])
    stream = set(IndexedReader(theirs).tokens.tolist())
    assert all(set(dataset[number].tolist()) <= stream for number in range(40))
    # Nothing is done twice; removal leaves it alone; without it in the recipe it goes.
    assert write(run, foreign={"theirs.en": theirs}) == (lock, 0)
    write_corpus(tmp_path / "corpus", without(mixed_shards(), {"w3"}))
    assert [place.id for place in remove(run, "rewrite").places] == ["w3"]
    check(run)
    assert read_lock(f"{run}/mixture/{NAME}").groups["theirs.en"].files == group.files
    (tmp_path / "theirs.bin").write_bytes(bytes(119 * 4))
    with pytest.raises(StaleDataError, match=r"theirs\.en\.bin: its content is not"):
        BlendedDataset(f"{run}/mixture/{NAME}", "train", 40)
    assert write(run, foreign={"theirs.en": theirs})[0] != lock
    assert "theirs.en" not in write(run)[0].groups


def test_foreign_data_that_cannot_be_used(run: str, tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path / "theirs", top=30_000)
    with pytest.raises(MixtureError, match="the vocabulary has"):
        write(run, foreign={"theirs.en": theirs})
    with pytest.raises(MixtureError, match="'theirs' is no name"):
        write(run, foreign={"theirs": theirs})
    with pytest.raises(MixtureError, match=r"has a group 'web\.en', too"):
        write(run, foreign={"web.en": theirs})
    with pytest.raises(StorageError, match="no such file"):
        write(run, foreign={"theirs.en": str(tmp_path / "nowhere")})


def parse_weighted_split_paths(text: str) -> dict[str, list[tuple[float, tuple[float, float], str]]]:
    """As the option is documented: quoted groups `NAME: W S:E PATH, W S:E PATH`."""
    found = {}
    for part in shlex.split(text):
        name, _, entries = part.partition(": ")
        rows = [entry.split() for entry in entries.split(", ")]
        found[name] = [(float(w), (float(s.split(":")[0]), float(s.split(":")[1])), path) for w, s, path in rows]
    return found


def test_options_of_other_trainers(tmp_path: Path) -> None:
    split = {"method": "range", "train": "0:0.9", "validation": "0.9:1"}
    groups = numbered_groups({"a.en": [9] * 30, "b.en": [5] * 10, "c.en": [5] * 10})
    path = build_mixture(tmp_path, groups, {"a.en": 0.7, "b.en": 0.1 + 0.2, "c.en": 0}, split)
    lock = read_lock(path)
    lines = export_options(lock, str(tmp_path), "weighted-split-paths")
    option, _, value = lines[0].partition(" ")
    assert option == "--train-weighted-split-paths"
    wanted = [(0.7, (0.0, 0.9), str(tmp_path / "a.en")), (0.1 + 0.2, (0.0, 0.9), str(tmp_path / "b.en"))]
    assert parse_weighted_split_paths(value) == {"TRAIN": wanted}
    option, _, value = lines[1].partition(" ")
    found = parse_weighted_split_paths(value)
    assert option == "--valid-weighted-split-paths" and list(found) == ["VALID", "VALID_a.en", "VALID_b.en"]
    assert found["VALID_b.en"] == [(1.0, (0.9, 1.0), str(tmp_path / "b.en"))]
    with pytest.raises(MixtureError, match="a split by range has no form as --split"):
        export_options(lock, str(tmp_path), "data-path")
    words = export_options(lock, str(tmp_path), "data-path", all_documents=True)[0].split()
    assert words == ["--data-path", "0.7", str(tmp_path / "a.en"), repr(0.1 + 0.2), str(tmp_path / "b.en")]
    other = read_lock(build_mixture(tmp_path / "comma", groups, split={"method": "comma", "parts": "98,2,0"}))
    assert export_options(other, "x", "data-path")[1] == "--split 98,2,0"
    with pytest.raises(MixtureError, match="separates entries"):
        export_options(other, "a folder", "data-path")


def test_export_command(tmp_path: Path) -> None:
    build_mixture(tmp_path / "mixture", numbered_groups({"a.en": [9] * 30}))
    runner = CliRunner()
    done = runner.invoke(app, ["export", "--run", str(tmp_path), "--all-documents"])
    assert done.exit_code == 0 and '"TRAIN: 1.0 0:1 ' in done.stdout
    assert "a split by hash has no form" in str(runner.invoke(app, ["export", "--run", str(tmp_path)]).exception)
    wrong = runner.invoke(app, ["export", "--run", str(tmp_path), "--style", "datapath"])
    assert "Did you mean 'data-path'" in str(wrong.exception)


def test_the_corpus_is_a_hugging_face_data_set(tmp_path: Path) -> None:
    shards = mixed_shards()
    write_corpus(tmp_path / "corpus", shards)
    found = datasets.load_dataset(
        "parquet", data_dir=str(tmp_path / "corpus" / "documents"), split="train", cache_dir=str(tmp_path / "cache")
    )
    rows = [row for name in sorted(shards) for row in shards[name]]
    assert list(zip(found["id"], found["text"], found["source"], found["language"], strict=True)) == rows
