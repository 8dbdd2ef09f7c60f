"""What DeepSpeed is told for each precision, and how the loss scale of float16 moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from deepspeed.runtime.fp16.loss_scaler import CreateLossScaler

from roots_pipeline.core.errors import TrainingError
from tests.train.scenario import VOCABULARY, settings
from train.engine import build_engine
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
    scaler = CreateLossScaler(
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
