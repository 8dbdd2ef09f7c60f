"""Checkpoints are whole or do not count."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roots_pipeline.core.errors import StaleDataError, StorageError, TrainingError
from train.checkpoint import Checkpoints
from train.model.shape import Shape
from train.parallel.layout import Layout
from train.parallel.topology import Place, connect
from train.saved import Saved, broken_because, check_continues, newest_complete


class WritesTwoFiles:
    """Stands for DeepSpeed's engine: writes a model file and a file in a folder below."""

    module = SimpleNamespace(shape=Shape(8, 2, 2, 16), universal_checkpoint_info=dict)

    def __init__(self, fail: Exception | None = None) -> None:
        self.fail = fail

    def save_checkpoint(self, folder: str, tag: str, client_state: dict[str, Any], save_latest: bool) -> None:
        assert not save_latest
        place = Path(folder) / tag
        (place / "below").mkdir(parents=True)
        (place / "model.pt").write_bytes(b"weights of step %d" % client_state["step"])
        if self.fail:
            raise self.fail
        (place / "below" / "optimizer.pt").write_bytes(b"moments")


@pytest.fixture(scope="module")
def place() -> Place:
    return connect(Layout())


def save(place: Place, folder: Path, *steps: int, keep: int = 9) -> Checkpoints:
    checkpoints = Checkpoints(folder, place, {"lr": 0.1}, keep=keep)
    for step in steps:
        checkpoints.save(WritesTwoFiles(), step, 10 * step)
    return checkpoints


def found(folder: Path) -> tuple[Saved | None, list[str]]:
    messages: list[str] = []
    return newest_complete(folder, messages.append), messages


def test_newest_is_found_with_its_position(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 3, 20, 100)
    saved, messages = found(tmp_path)
    assert saved is not None and (saved.step, saved.samples, messages) == (100, 1000, [])
    assert saved.layout == Layout() and saved.identity == {"lr": 0.1}
    assert (tmp_path / "latest").read_text() == "step_00000100\n"


def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def half_a_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_bytes(path.read_bytes()[:40])


def file_missing(folder: Path) -> None:
    (folder / "below" / "optimizer.pt").unlink()


def file_cut_short(folder: Path) -> None:
    (folder / "model.pt").write_bytes((folder / "model.pt").read_bytes()[:-3])


def one_bit_flipped(folder: Path) -> None:
    data = bytearray((folder / "model.pt").read_bytes())
    data[5] ^= 1
    (folder / "model.pt").write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (no_manifest, "no manifest"),
        (half_a_manifest, "cannot be read"),
        (file_missing, "optimizer.pt is missing"),
        (file_cut_short, "model.pt has 14 bytes instead of 17"),
        (one_bit_flipped, "content of model.pt has changed"),
    ],
)
def test_damaged_checkpoint_is_skipped_with_its_reason(
    place: Place, tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    save(place, tmp_path, 5, 6)
    damage(tmp_path / "step_00000006")
    saved, messages = found(tmp_path)
    assert saved is not None and saved.step == 5
    if damage is not one_bit_flipped:  # which takes a hash to see
        assert newest_complete(tmp_path, print, hashes=False) == saved
    assert len(messages) == 1 and messages[0].startswith("Skipping checkpoint step_00000006") and reason in messages[0]


def test_process_killed_while_writing_leaves_the_older_one(place: Place, tmp_path: Path) -> None:
    checkpoints = save(place, tmp_path, 5)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(WritesTwoFiles(fail=KeyboardInterrupt()), 6, 60)  # type: ignore[arg-type]
    saved, messages = found(tmp_path)
    assert saved is not None and (saved.step, messages) == (5, [])
    save(place, tmp_path, 7)  # clears the remains away
    assert sorted(os.listdir(tmp_path)) == ["latest", "step_00000005", "step_00000007"]


def test_full_disk_is_an_error_with_advice(place: Place, tmp_path: Path) -> None:
    full = WritesTwoFiles(fail=RuntimeError("PytorchStreamWriter failed writing file"))
    with pytest.raises(StorageError, match="free space"):
        Checkpoints(tmp_path, place, {}, keep=1).save(full, 1, 1)


def test_broken_checkpoint_of_the_same_step_is_replaced(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 5)
    one_bit_flipped(tmp_path / "step_00000005")
    save(place, tmp_path, 5)
    assert broken_because(tmp_path / "step_00000005") is None


def test_only_the_newest_are_kept(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 1, 2, 30, 4, 5, keep=2)
    assert sorted(path.name for path in tmp_path.glob("step_*")) == ["step_00000005", "step_00000030"]
    assert not list(tmp_path.glob(".*"))


def test_checkpoint_of_other_settings_names_the_setting(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 1)
    saved, _ = found(tmp_path)
    assert saved is not None
    check_continues(saved, {"lr": 0.1}, Layout())
    for other in ({"lr": 0.2}, {}, {"lr": 0.1, "clip": 1.0}):
        with pytest.raises(StaleDataError, match=r"belong to another run: (lr|clip) was"):
            check_continues(saved, other, Layout())


def test_checkpoint_of_another_layout_is_refused_before_it_is_read(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 1)
    manifest = tmp_path / "step_00000001" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"tensor": 1', '"tensor": 2'))
    with pytest.raises(TrainingError, match=r"tensor 2 x .* this run has data 1 x tensor 1 x"):
        Checkpoints(tmp_path, place, {"lr": 0.1}, keep=1).restore(WritesTwoFiles(), print)
