"""What DeepSpeed is told for each precision, and how the loss scale of float16 moves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from roots_pipeline.core.errors import TrainingError
from tests.train.scenario import VOCABULARY, MadeUpText, numbers, settings, train
from train import precision
from train.engine import build_engine
from train.parallel.backend import deepspeed
from train.parallel.topology import connect
from train.precision import check_precision, precision_settings, skipped_step


def test_float16_without_a_gpu_is_refused_before_a_model_is_built() -> None:
    config = settings(precision="fp16")
    place = connect(config.layout(1))
    if place.device.type == "cuda":
        pytest.skip("there is a GPU")
    with pytest.raises(TrainingError, match=r"fp16 needs a GPU.*train\.precision bf16 or fp32"):
        build_engine(config, VOCABULARY, place)
    check_precision("fp16", torch.device("cuda"))


def test_loss_scale_is_that_of_the_small_models() -> None:
    """It starts at 2^12, halves at each overflow but the first, not below 1, and doubles after 500 steps without."""
    told = precision_settings("fp16")["fp16"]
    scaler = deepspeed.runtime.fp16.loss_scaler.CreateLossScaler(
        dtype=torch.half,
        static_loss_scale=told["loss_scale"],
        dynamic_scaling=told["loss_scale"] == 0,
        dynamic_loss_args={
            "init_scale": 2 ** told["initial_scale_power"],
            "scale_window": told["loss_scale_window"],
            "delayed_shift": told["hysteresis"],
            "min_scale": told["min_loss_scale"],
            "consecutive_hysteresis": False,
        },
    )
    scaler.raise_error_at_min_scale = False
    scales = [scaler.loss_scale]
    for overflow in [True, True, True, *[False] * 501, *[True] * 20]:
        scaler.update_scale(overflow)
        scales.append(scaler.loss_scale)
    assert scales[:4] == [4096, 4096, 2048, 1024] and scales[-1] == 1
    assert 2048 in scales[490:506] and set(scales[4:490]) == {1024}


def test_only_an_overflow_of_float16_is_a_skipped_step() -> None:
    overflowed = SimpleNamespace(optimizer=SimpleNamespace(overflow=True))
    assert skipped_step("fp16", overflowed)
    assert not skipped_step("fp16", SimpleNamespace(optimizer=SimpleNamespace(overflow=False)))
    assert not skipped_step("bf16", overflowed)  # nothing is scaled: a loss that is no number is one


@pytest.fixture
def slow_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch can compute in float16 on a CPU, only so slowly that we and DeepSpeed refuse to train in it."""
    monkeypatch.setattr("train.engine.check_precision", lambda *_: None)
    monkeypatch.setattr(deepspeed.accelerator.get_accelerator(), "is_fp16_supported", lambda: True)


@pytest.mark.usefixtures("slow_float16")
def test_float16_follows_float32(tmp_path: Path) -> None:
    half, single = (numbers(train(settings(precision=kind, dropout=0.1), tmp_path / kind)) for kind in ("fp16", "fp32"))
    for mine, theirs in zip(half, single, strict=True):
        assert mine == pytest.approx(theirs, rel=2e-3)


@pytest.mark.usefixtures("slow_float16")
def test_overflow_leaves_a_step_out_and_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a scale far too large the first steps change nothing, their samples are used up, and no one complains."""
    monkeypatch.setitem(precision._LOSS_SCALING, "initial_scale_power", 24)
    monkeypatch.setitem(precision._LOSS_SCALING, "hysteresis", 1)
    config = settings(precision="fp16", steps=12, evaluate_every=0, validation_samples=0, save_every=0)
    records = train(config, tmp_path, source=MadeUpText(16, distinct=4))
    losses = [record["loss"] for record in records]
    skipped = [record["gradient_norm"] is None for record in records]  # JSON has no infinity
    assert 2 < sum(skipped) < 8 and skipped == sorted(skipped, reverse=True)
    assert len(set(losses[: sum(skipped) + 1])) == 1 and losses[-1] < losses[0] - 0.05
