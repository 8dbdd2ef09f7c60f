"""A run continues in any layout, and a universal checkpoint holds the same numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import torch
from safetensors.torch import load_file

from roots_pipeline.core.errors import RecipeError, TrainingError
from tests.train.reshard_processes import KINDS, LAYOUTS, config
from tests.train.scenario import numbers, train
from train.convert import check_layout, convert
from train.export import published_parameters
from train.model.shape import parameter_count
from train.parallel.layout import Layout
from train.saved import Saved, broken_because, newest_complete
from train.whole import open_whole


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Path:
    """FOLDER/<model>/<layout>, written by the processes of `reshard_processes`."""
    folder = tmp_path_factory.mktemp("reshard")
    command = [sys.executable, "-m", "tests.train.reshard_processes", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[float, ...]]]:
    """The uninterrupted runs in one process."""
    folder = tmp_path_factory.mktemp("whole")
    return {kind: numbers(train(config(kind), folder / kind)) for kind in KINDS}


def read_log(folder: Path) -> list[tuple[float, ...]]:
    return numbers([orjson.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()])


def assert_equal(mine: list[tuple[float, ...]], whole: list[tuple[float, ...]]) -> None:
    assert len(mine) == len(whole) == 9  # six steps, validation before, in the middle and at the end
    for found, expected in zip(mine, whole, strict=True):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


def saved_in(folder: Path) -> Saved:
    saved = newest_complete(folder / "checkpoints", print)
    assert saved is not None
    return saved


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_saved_on_eight_processes_and_continued_on_four(
    stopped: Path, whole: dict[str, list[tuple[float, ...]]], kind: str, layout: str
) -> None:
    assert saved_in(stopped / kind / "start").layout == Layout(2, 2, 2)
    assert_equal(read_log(stopped / kind / layout), whole[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("universal", [False, True])
def test_saved_on_eight_processes_and_continued_on_one(
    stopped: Path, whole: dict[str, list[tuple[float, ...]]], kind: str, universal: bool, tmp_path: Path
) -> None:
    shutil.copytree(stopped / kind / "start", tmp_path / "run")
    if universal:
        convert(saved_in(tmp_path / "run"))
        shutil.rmtree(tmp_path / "run" / "checkpoints" / "step_00000003")
    assert_equal(numbers(train(config(kind), tmp_path / "run")), whole[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_universal_checkpoint_holds_what_the_cut_one_does(stopped: Path, kind: str, tmp_path: Path) -> None:
    shutil.copytree(stopped / kind / "start", tmp_path / "run")
    cut = saved_in(tmp_path / "run")
    made = convert(cut)
    assert (made, made.layout, broken_because(made.folder)) == (saved_in(tmp_path / "run"), None, None)
    assert not list(made.folder.glob("*.pt"))
    before, after = (dict(published_parameters(saved, 96)) for saved in (cut, made))
    assert list(before) == list(after) and all(torch.equal(before[name], after[name]) for name in before)
    assert sum(values.numel() for values in before.values()) == parameter_count(config(kind).shape(96))
    moments = load_file(made.folder / "2.mlp.dense_4h_to_h.weight.safetensors")
    assert (
        set(moments) == {"fp32", "exp_avg", "exp_avg_sq"}
        and moments["exp_avg_sq"].min() >= 0 < moments["exp_avg"].std()
    )
    assert open_whole(made).optimizer_steps == open_whole(cut).optimizer_steps == 3


def test_layout_that_does_not_fit_is_refused_with_one_that_does(stopped: Path) -> None:
    saved = saved_in(stopped / "bloom" / "start")
    check_layout(saved, Layout(2, 4, 4))
    refused = {
        Layout(1, 3, 1): "Use tensor_parallel 2 or 4",
        Layout(1, 1, 3): "Use pipeline_parallel 1 or 2",
        Layout(3, 1, 1): "Use global_batch",
    }
    for layout, fix in refused.items():
        with pytest.raises(RecipeError, match=fix):
            check_layout(saved, layout)


def test_checkpoint_of_another_model_is_refused(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped / "bloom" / "start", tmp_path / "run")
    saved = saved_in(tmp_path / "run")
    other = config("bloom").model_copy(update={"model": config("gopher").model})
    manifest = saved.folder / "manifest.json"
    value = orjson.loads(manifest.read_bytes())
    value["identity"] = other.identity()
    manifest.write_bytes(orjson.dumps(value))
    with pytest.raises(TrainingError, match="this model as"):
        train(other, tmp_path / "run")
