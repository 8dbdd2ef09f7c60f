"""Checkpoints are whole or do not count."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from torch import nn

from roots_pipeline.core.errors import StaleDataError, StorageError, TrainingError
from train.background import read_tensors
from train.checkpoint import Checkpoints
from train.model.shape import Shape
from train.parallel.layout import Layout
from train.parallel.topology import Place, connect
from train.saved import Saved, broken_because, check_continues, newest_complete, saved_to_use, to_forget


class TinyModel(nn.Module):
    """Stands for our pipeline: a parameter, and what a checkpoint asks of a model."""

    shape = Shape(8, 2, 2, 16)

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def universal_checkpoint_info(self) -> dict[str, Any]:
        return {}


class WritesTwoFiles:
    """Stands for DeepSpeed's engine: writes a model file and a file in a folder below."""

    checkpoint_engine: Any = None

    def __init__(self, fail: BaseException | None = None, *, broken: bool = False) -> None:
        self.fail, self.broken, self.module = fail, broken, TinyModel()
        self.moments = torch.zeros(2)

    def save_checkpoint(self, folder: str, tag: str, client_state: dict[str, Any], save_latest: bool) -> None:
        assert not save_latest
        place = Path(folder) / tag
        (place / "below").mkdir(parents=True)
        self.checkpoint_engine.save({"step": client_state["step"]}, str(place / "model.pt"))
        if self.fail:
            raise self.fail
        missing = place / "missing" if self.broken else place
        self.checkpoint_engine.save({"moments": self.moments}, str(missing / "below" / "optimizer.pt"))

    def _get_zero_ckpt_name(self, folder: str, tag: str) -> str:
        return f"{folder}/{tag}/below/optimizer.pt"


@pytest.fixture(scope="module")
def place() -> Place:
    return connect(Layout())


def save(place: Place, folder: Path, *steps: int, keep: int = 9, **more: Any) -> Checkpoints:
    checkpoints = Checkpoints(folder, place, {"lr": 0.1}, keep=keep, **more)
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


def another_format(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format": 2', b'"format": 1'))


def manifest_without_files(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b'{"format": 2}')


def manifest_of_something_else(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"[1, 2]")


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
        (file_cut_short, "model.pt has "),
        (another_format, "format 1, this version reads 2"),
        (manifest_without_files, "lacks what it should hold"),
        (manifest_of_something_else, "format list"),
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
    assert (tmp_path / ".unfinished_00000006").is_dir()
    save(place, tmp_path, 7)  # clears the remains away
    assert sorted(os.listdir(tmp_path)) == ["latest", "step_00000005", "step_00000007"]


def test_full_disk_is_an_error_with_advice(place: Place, tmp_path: Path) -> None:
    for background in (False, True):
        checkpoints = Checkpoints(tmp_path, place, {}, keep=1, background=background)
        with pytest.raises(StorageError, match=r"could not be written.*free space"):
            checkpoints.save(WritesTwoFiles(broken=True), 1, 1)
            checkpoints.wait()
    assert found(tmp_path) == (None, [])


def test_training_may_go_on_while_files_are_written(place: Place, tmp_path: Path) -> None:
    engine = WritesTwoFiles()
    checkpoints = Checkpoints(tmp_path, place, {}, keep=9, background=True)
    started, may_write = Event(), Event()
    checkpoints._thread.submit(lambda: (started.set(), may_write.wait(60)))
    assert started.wait(60)
    engine.moments.fill_(1.0)
    final = checkpoints.save(engine, 1, 1)
    engine.moments.fill_(2.0)  # the next step of training
    assert not final.exists()
    may_write.set()
    checkpoints.wait()
    assert read_tensors(final / "below" / "optimizer.pt", lazily=False)["moments"].tolist() == [1.0, 1.0]


class RunsCode:
    """What a pickle from somebody else may hold."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


def test_files_that_would_run_code_are_refused(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(2), "more": RunsCode()}, tmp_path / "bad.pt")
    with pytest.raises(StorageError, match=r"bad\.pt: this is no file of a checkpoint.*that this program wrote"):
        read_tensors(tmp_path / "bad.pt", lazily=True)


def test_damaged_later_checkpoint_does_not_push_out_the_good_one(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 5, 9)
    (tmp_path / "step_00000009" / "model.pt").unlink()
    save(place, tmp_path, 6, keep=1)
    saved, _ = found(tmp_path)
    assert saved is not None and saved.step == 6


def at(step: int, hours: float) -> Saved:
    return Saved(Path(f"step_{step:08d}"), step, step, Layout(), {}, {}, {}, [], None, hours * 3600)


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ({"keep": 1}, [60]),
        ({"keep": 3}, [40, 50, 60]),
        ({"keep": 1, "keep_every": 20}, [20, 40, 60]),
        ({"keep": 1, "keep_hours": 2.5}, [10, 40, 60]),
        ({"keep": 2, "keep_every": 30, "keep_hours": 5.0}, [10, 30, 50, 60]),
        ({"keep": 9}, [10, 20, 30, 40, 50, 60]),
    ],
)
def test_what_is_kept_by_number_steps_and_hours(rules: dict[str, Any], kept: list[int]) -> None:
    saved = [at(step, step / 10) for step in range(10, 70, 10)]  # one an hour
    doomed = {one.step for one in to_forget(saved, **rules)}
    assert [one.step for one in saved if one.step not in doomed] == kept
    # Deciding after every save keeps what deciding once does.
    alive: list[Saved] = []
    for one in saved:
        alive.append(one)
        gone = to_forget(alive, **rules)
        alive = [other for other in alive if other not in gone]
    assert [one.step for one in alive] == kept


def test_export_never_takes_an_older_checkpoint_by_itself(place: Place, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"no complete checkpoint here.*train run"):
        saved_to_use(tmp_path)
    save(place, tmp_path, 5, 6)
    assert saved_to_use(tmp_path).step == 6 and saved_to_use(tmp_path, 5).step == 5
    (tmp_path / "step_00000006_universal").mkdir()  # damaged, but the other form of the same step is not
    assert saved_to_use(tmp_path).step == 6
    (tmp_path / "step_00000006_universal").rmdir()
    one_bit_flipped(tmp_path / "step_00000006")
    with pytest.raises(StaleDataError, match=r"step_00000006 cannot be used: the content of.*train run.*--step 5"):
        saved_to_use(tmp_path)
    shutil.rmtree(tmp_path / "step_00000006")
    with pytest.raises(StaleDataError, match=r"step_00000006 is missing.*train run.*--step 5"):
        saved_to_use(tmp_path)
    assert saved_to_use(tmp_path, 5).step == 5
    with pytest.raises(StaleDataError, match="step_00000007 is missing"):
        saved_to_use(tmp_path, 7)


def test_broken_checkpoint_of_the_same_step_is_replaced(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 5)
    one_bit_flipped(tmp_path / "step_00000005")
    save(place, tmp_path, 5)
    assert broken_because(tmp_path / "step_00000005") is None


def test_only_the_newest_are_kept(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 1, 2, 9, 10, 100, keep=2)
    assert sorted(path.name for path in tmp_path.glob("step_*")) == ["step_00000010", "step_00000100"]
    assert not list(tmp_path.glob(".*"))


def test_checkpoint_of_other_settings_names_the_setting(place: Place, tmp_path: Path) -> None:
    save(place, tmp_path, 1)
    saved, _ = found(tmp_path)
    assert saved is not None
    check_continues(saved, {"lr": 0.1})
    for other in ({"lr": 0.2}, {}, {"lr": 0.1, "clip": 1.0}):
        with pytest.raises(StaleDataError, match=r"belong to another run: (lr|clip) was"):
            check_continues(saved, other)
