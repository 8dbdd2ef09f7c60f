"""The lock: it survives a round trip and notices whatever no longer fits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mixtures.lock import check_files, check_inputs, differences, probe, read_lock, write_lock
from roots_pipeline.core.errors import StaleDataError, StorageError
from tests.mixtures.build import build_mixture, numbered_groups


@pytest.fixture
def lock_path(tmp_path: Path) -> str:
    groups = numbered_groups({"web.en": [30, 40], "web.zh/tw": [3, 5, 7]})
    return build_mixture(tmp_path, groups, {"web.en": 1 / 3, "web.zh/tw": 1e-17})


def test_round_trip(lock_path: str) -> None:
    lock = read_lock(lock_path)
    assert [group.weight for group in lock.groups.values()] == [1 / 3, 1e-17]
    assert lock.groups["web.zh/tw"].file == "web.zh%2Ftw"
    before = Path(lock_path).read_bytes()
    write_lock(lock_path, lock)
    assert read_lock(lock_path) == lock and Path(lock_path).read_bytes() == before
    assert replace(lock, seed=43).fingerprint != lock.fingerprint


def test_every_change_of_a_file_is_named(lock_path: str, tmp_path: Path) -> None:
    lock = read_lock(lock_path)
    check_files(lock, str(tmp_path), full=True)
    for suffix in (".bin", ".idx", ".documents.parquet"):
        file = tmp_path / f"web.en{suffix}"
        good = file.read_bytes()
        file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        for full in (False, True):
            with pytest.raises(StaleDataError, match=rf"web\.en{suffix}: its content is not what the lock describes"):
                check_files(lock, str(tmp_path), full=full)
        file.write_bytes(good + b"x")
        with pytest.raises(StaleDataError, match=f"has {len(good) + 1} bytes, the lock says {len(good)}"):
            check_files(lock, str(tmp_path))
        file.unlink()
        with pytest.raises(StaleDataError, match="a file of the mixture is missing"):
            check_files(lock, str(tmp_path))
        file.write_bytes(good)
    check_files(lock, str(tmp_path), full=True)


def test_probe_of_a_large_file(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(1 << 20))
    first = probe(str(file))
    with file.open("r+b") as handle:
        handle.seek(-1, 2)
        handle.write(b"x")
    assert probe(str(file)) != first
    file.write_bytes(b"\x01" * (1 << 20))
    assert probe(str(file)) != first


def test_other_inputs_are_named(lock_path: str) -> None:
    lock = read_lock(lock_path)
    check_inputs(lock, corpus="c0ffee", tokenizer="7ea")
    with pytest.raises(StaleDataError, match=r"another corpus \(c0ffee, now decaf\)"):
        check_inputs(lock, corpus="decaf", tokenizer="7ea")
    with pytest.raises(StaleDataError, match="another tokenizer"):
        check_inputs(lock, tokenizer="coffee")
    english = lock.groups["web.en"]
    files = {**english.files, ".bin": replace(english.files[".bin"], xxh3="0")}
    other = replace(lock, seed=1, groups={"web.en": replace(english, weight=1.0, files=files)})
    assert differences(lock, lock) == []
    assert differences(lock, other) == [
        "seed was 42, now 1", f"weight of web.en was {1 / 3}, now 1.0", "web.en.bin has other content",
        "group web.zh/tw is missing",
    ]  # fmt: skip
    assert differences(other, lock)[-1] == "group web.zh/tw is new"


def test_unreadable_locks(lock_path: str) -> None:
    text = Path(lock_path).read_text("utf-8")
    for broken, message in (
        ("a: [", "cannot be read as YAML"),
        ("a: " + "[" * 3000, "nested too deeply"),
        ("a: 2026-13-45", "month must be in 1"),
        ("just text", "the lock has format str"),
        (text.replace("format: 1", "format: 2"), "format 2, this version reads 1"),
        (text.replace("vocab_size", "vocabulary"), "a field is missing or unknown"),
        (text.replace("  weight", "  height", 1), "a field is missing or unknown"),
        (text.replace("weight: 0.3333333333333333", "weight: .inf"), r"the weight of 'web\.en' is inf"),
        (text.replace("weight: 0.3333333333333333", "weight: -1"), r"the weight of 'web\.en' is -1"),
        (text.replace("weight: 0.3333333333333333", "weight: x"), r"the weight of 'web\.en' is 'x'"),
        (re.sub("weight: .*", "weight: 0", text), "the sum of the weights is 0"),
        (text.replace("sequence_length: 8", "sequence_length: 0"), "sequence_length is 0, which no mixture has"),
        (text.replace("sequence_length: 8", "sequence_length: true"), "sequence_length is True"),
        (text.replace("seed: 42", "seed: 4.5"), r"seed is 4\.5"),
        (text.replace("variant: big", "variant: small"), "variant is 'small"),
        ("!!python/object/apply:os.system ['true']", "cannot be read as YAML"),
    ):
        Path(lock_path).write_text(broken, "utf-8")
        with pytest.raises((StaleDataError, StorageError), match=message):
            read_lock(lock_path)
