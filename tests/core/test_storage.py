"""Files are whole or absent, and fingerprints follow content."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import fsspec
import pytest

from roots_pipeline.core import storage
from roots_pipeline.core.errors import RecipeError, StorageError


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file"
    with storage.commit_file(str(target)) as temporary:
        Path(temporary).write_bytes(b"abc")
        assert not target.exists()
    assert target.read_bytes() == b"abc"
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), storage.commit_file(str(target)) as temporary:
        Path(temporary).write_bytes(b"new")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_disk_errors_become_sentences(tmp_path: Path, code: int) -> None:
    with pytest.raises(StorageError, match="cannot write"), storage.commit_file(str(tmp_path / "file")):
        raise OSError(code, os.strerror(code))


def _write_slowly(target: str) -> None:
    with storage.commit_file(target) as temporary:
        Path(temporary).write_bytes(b"half")
        time.sleep(60)


def test_a_killed_writer_leaves_only_a_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    process = multiprocessing.get_context("fork").Process(target=_write_slowly, args=(str(target),))
    process.start()
    while not any(tmp_path.glob(".file.*.tmp")):
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert not target.exists()
    storage.sweep_temporaries(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def _hold_lock(folder: str, ready: object) -> None:
    with storage.lock_folder(folder):
        ready.set()  # type: ignore[attr-defined]
        time.sleep(60)


def test_a_second_run_is_refused_and_a_dead_one_is_not_waited_for(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_hold_lock, args=(str(tmp_path), ready))
    process.start()
    assert ready.wait(30)
    with pytest.raises(StorageError, match="another run"), storage.lock_folder(str(tmp_path)):
        pass
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    with storage.lock_folder(str(tmp_path)):
        pass


def test_remote_paths_commit_too() -> None:
    storage.write_json("memory://run/a.json", {"x": 1})
    assert storage.read_json("memory://run/a.json") == {"x": 1}
    assert storage.list_files("memory://run", ".json") == ["memory://run/a.json"]
    assert storage.size_of("memory://run/none") is None
    storage.remove_file("memory://run/a.json")
    assert not fsspec.filesystem("memory").exists("/run/a.json")


def test_fingerprints_depend_on_values_only() -> None:
    assert storage.fingerprint({"a": 1, "b": [2]}) == storage.fingerprint({"b": [2], "a": 1})
    assert storage.fingerprint({"a": 1}) != storage.fingerprint({"a": 2})


@pytest.mark.parametrize("number", [10**20, -(10**20)])
def test_a_number_of_more_than_64_bits_is_a_sentence_that_names_it(tmp_path: Path, number: int) -> None:
    with pytest.raises(RecipeError, match=f"the number {number} is too large"):
        storage.fingerprint([{"a": [1, True], "limit": number}])
    with pytest.raises(RecipeError, match="too large"):
        storage.write_json(str(tmp_path / "x.json"), {"samples": (number,)})
    assert not list(tmp_path.iterdir())
    assert storage.to_json([2**64 - 1, -(2**63)]) == b"[18446744073709551615,-9223372036854775808]"
    with pytest.raises(TypeError):
        storage.to_json({"a": object()})


def test_files_and_folders_in_each_others_place_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for work in (lambda: storage.write_bytes(str(tmp_path / "file" / "x"), b""),
                 lambda: storage.read_json(str(tmp_path / "folder")),
                 lambda: storage.write_bytes(str(tmp_path / ("x" * 250)), b"")):
        with pytest.raises((OSError, StorageError)) as caught:
            work()
        sentence = caught.value if isinstance(caught.value, StorageError) else storage.explain_os_error(caught.value)
        assert "cannot use this path" in str(sentence) and "Move away" in str(sentence)
    with pytest.raises(StorageError, match="a file stands where a folder is needed"), \
            storage.lock_folder(str(tmp_path / "file")):
        pass


def test_not_json_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(StorageError, match="not valid JSON"):
        storage.read_json(str(tmp_path / "x.json"))


def test_a_folder_without_a_name_and_an_unknown_protocol_are_refused() -> None:
    with pytest.raises(StorageError, match="has no name"):
        storage.join("", "corpus")
    assert storage.join("file:///tmp/x", "corpus") == "/tmp/x/corpus"
    assert storage.join("/", "corpus") == "/corpus"
    with pytest.raises(StorageError, match="cannot use this address"):
        storage.exists("foo://x/y")


@pytest.mark.parametrize(("path", "record"), [("/r/a/b", "/r/c/d.json"), ("r/a", "r/a.json"), ("s3://r/a/b", "s3://r/c/d")])
def test_names_beside_a_record_lead_back(path: str, record: str) -> None:
    assert storage.from_beside(storage.to_beside(path, record), record) == path
