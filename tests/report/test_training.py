"""The training log: all points of a short one, means and extremes of a long one, broken lines."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import orjson
import pytest

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.report.training import collect_training
from tests.report.synthetic import log_lines, write_model


def test_a_short_log_is_kept_point_by_point(tmp_path: Path) -> None:
    lines = log_lines()
    write_model(tmp_path, lines, finished=False)
    training = collect_training(str(tmp_path / "model"), None, 4000)
    losses = [line["loss"] for line in lines if "loss" in line]
    curve = training.curves["loss"]
    assert list(curve.means) == list(curve.lows) == list(curve.highs) == losses
    assert list(curve.steps) == [line["step"] for line in lines if "loss" in line]
    validation = training.curves["validation_loss"]
    assert validation.last == lines[-1]["validation_loss"] and len(validation.steps) == 5
    assert (training.steps, training.samples, training.unigram_entropy) == (120, 960, 6.1)
    assert training.uniform_loss == math.log(4000) and training.tokens is None


def test_a_long_log_is_thinned_without_losing_extremes_or_means(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(5, 1, 10_007)
    values[7_777] = 99.0
    lines = [{"step": step, "samples": step, "loss": float(value)} for step, value in enumerate(values, 1)]
    write_model(tmp_path, lines)
    curve = collect_training(str(tmp_path / "model"), None, None).curves["loss"]
    assert 200 < len(curve.means) <= 600
    assert max(curve.highs) == 99.0 and min(curve.lows) == values.min() and curve.last == values[-1]
    size = math.ceil(len(values) / len(curve.means))
    size = 1 << (size - 1).bit_length()
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    np.testing.assert_allclose(curve.means, [part.mean() for part in parts])
    np.testing.assert_allclose(curve.highs, [part.max() for part in parts])


def test_a_growing_log(tmp_path: Path) -> None:
    write_model(tmp_path, log_lines(3), finished=False)
    with open(tmp_path / "model" / "log.jsonl", "ab") as log:
        log.write(b'{"step": 4, "los')
    assert collect_training(str(tmp_path / "model"), None, None).steps == 3


def test_null_and_odd_values_are_left_out(tmp_path: Path) -> None:
    write_model(tmp_path, [])
    lines = [{"step": 1, "samples": 8, "loss": None}, {"step": 2, "samples": 16, "loss": "high"},
             {"step": 3, "samples": 24, "loss": True}]
    (tmp_path / "model" / "log.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    training = collect_training(str(tmp_path / "model"), None, None)
    assert training.curves == {} and training.steps == 3


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    write_model(tmp_path, log_lines(2))
    path = tmp_path / "model" / "log.jsonl"
    path.write_bytes(b"[1]\n" + path.read_bytes())
    with pytest.raises(StaleDataError, match=r"log\.jsonl:1: .*python -m train run"):
        collect_training(str(tmp_path / "model"), None, None)
