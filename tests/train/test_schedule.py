"""Learning rate and batch size against the original program's numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from train.schedule import BatchSize, LearningRate


def load(shared: Path, name: str) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads((shared / "golden" / "megatron" / name).read_text()))


def test_learning_rates_equal_the_original_bit_for_bit(shared: Path) -> None:
    for case in load(shared, "04b_learning_rate.json")["schedules"]:
        schedule = LearningRate(case["max_lr"], case["min_lr"], case["warmup"], case["decay"], case["style"])
        for consumed, rate, *_ in case["rows"]:
            assert schedule(consumed) == rate, (case["name"], case["style"], consumed)


def test_rate_used_in_a_step_is_the_one_before_it(shared: Path) -> None:
    schedule = LearningRate(6e-5, 6e-6, 183_105, 200_000_000)
    ramp = BatchSize(2048, 192, 16, 9_765_625)
    rows = {row[0]: row for row in load(shared, "04b_learning_rate.json")["run_176B"]["rows"]}
    step = consumed = checked = 0
    while step < 13_000:
        used, batch = schedule(consumed), ramp(consumed)
        step, consumed = step + 1, consumed + batch
        if step in rows:
            assert [consumed, used, schedule(consumed)] == rows[step][1:4]
            checked += 1
    assert checked > 10


def test_batch_ramps_equal_the_original(shared: Path) -> None:
    for case in load(shared, "04_batch_ramp.json")["ramps"]:
        ramp = BatchSize(case["global_batch_size"], case["start"], case["increment"], case["ramp_samples"])
        assert ramp.steps(case["train_samples"]) == case["total_iterations"]
        for row in case["rows"]:
            assert ramp(row["consumed_before"]) == row["global_batch_size"], row


def test_known_points_of_the_published_run() -> None:
    schedule = LearningRate(6e-5, 6e-6, 183_105, 200_000_000)
    assert schedule(9_841_584) == pytest.approx(5.969e-5, rel=1e-4)
    assert schedule(158_692_272) == pytest.approx(1.150e-5, rel=1e-3)
    assert schedule(0) == 0.0 and schedule(183_105) == 6e-5 and schedule(10**9) == 6e-6


def test_constant_batch_drops_what_is_left_over() -> None:
    assert [BatchSize(4, 4).steps(samples) for samples in (4, 7, 8, 11)] == [1, 1, 2, 2]
