"""Manifests: equal runs give equal bytes, and whatever is not a manifest of ours is a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import check_files, read_manifest, write_manifest


def write(folder: Path, **more: Any) -> None:
    write_manifest(str(folder), "corpus", config={"a": 1}, inputs={}, counts={"kept": 3}, fingerprint="f", **more)


def test_round_trip_and_equal_bytes(tmp_path: Path) -> None:
    write(tmp_path, seeds={"s": 1})
    first = (tmp_path / "manifest.json").read_bytes()
    stamp = (tmp_path / "manifest.json").stat().st_mtime_ns
    write(tmp_path, seeds={"s": 1})
    assert (tmp_path / "manifest.json").stat().st_mtime_ns == stamp
    assert (tmp_path / "manifest.json").read_bytes() == first
    manifest = read_manifest(str(tmp_path))
    assert (manifest.step, manifest.counts, manifest.seeds) == ("corpus", {"kept": 3}, {"s": 1})


def test_a_missing_one_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(StaleDataError, match="Run `make corpus` first"):
        read_manifest(str(tmp_path), made_by="make corpus")


@pytest.mark.parametrize("change", [{"format": 2}, {"format": 1, "extra": 0}, [], {"format": 1, "step": "x"}])
def test_other_formats_and_strange_keys_are_a_sentence(tmp_path: Path, change: Any) -> None:
    write(tmp_path)
    value = orjson.loads((tmp_path / "manifest.json").read_bytes())
    if isinstance(change, dict) and "step" in change:
        value = change
    else:
        value = {**value, **change} if isinstance(change, dict) else change
    (tmp_path / "manifest.json").write_bytes(orjson.dumps(value))
    with pytest.raises(StaleDataError):
        read_manifest(str(tmp_path))


def test_lost_and_cut_files_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    write(tmp_path, files={"x": {"size": 3, "xxh3": ""}})
    check_files(str(tmp_path), read_manifest(str(tmp_path)))
    (tmp_path / "x").write_bytes(b"ab")
    with pytest.raises(StaleDataError, match="x has 2 bytes instead of 3"):
        check_files(str(tmp_path), read_manifest(str(tmp_path)))
    (tmp_path / "x").unlink()
    with pytest.raises(StaleDataError, match="x is missing"):
        check_files(str(tmp_path), read_manifest(str(tmp_path)))


def test_a_damaged_manifest_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format"')
    write(tmp_path)
    assert read_manifest(str(tmp_path)).step == "corpus"
