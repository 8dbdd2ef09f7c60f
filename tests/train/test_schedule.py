"""Learning rate and batch size against the original program's numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from train.schedule import BatchSize, LearningRate, WeightDecay


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


def test_other_schedules_equal_megatron_core(shared: Path) -> None:
    """Start rates, warm-up then stable then decay, inverse square root, and ramps of the weight decay."""
    checked = 0
    for case in load(shared, "04b_learning_rate.json")["core_extras"]:
        if "wd_style" in case:
            rate = LearningRate(6e-5, 6e-6, 183_105, 200_000_000, start=case["init_lr"])
            decay = WeightDecay(case["start_wd"], case["end_wd"], case["wd_incr_steps"], case["wd_style"])
            for consumed, *expected in case["rows"]:
                assert [rate(consumed), decay(consumed)] == expected, (case["wd_style"], consumed)
        else:
            style = case["lr_style"].lower().replace("inverse-square-root", "inverse_sqrt")
            anneal = case["wsd_decay_steps"] or 0, case["wsd_style"] or "linear"
            rate = LearningRate(case["max_lr"], case["min_lr"], case["warmup"], case["decay"], style, 0.0, *anneal)
            for consumed, expected in case["rows"]:
                assert rate(consumed) == expected, (style, anneal, consumed)
        checked += len(case["rows"])
    assert checked > 80


def test_batch_ramps_equal_the_original(shared: Path) -> None:
    for case in load(shared, "04_batch_ramp.json")["ramps"]:
        ramp = BatchSize(case["global_batch_size"], case["start"], case["increment"], case["ramp_samples"])
        assert ramp.steps(case["train_samples"]) == case["total_iterations"]
        for row in case["rows"]:
            assert ramp(row["consumed_before"]) == row["global_batch_size"], row
        for _, consumed, batch, *_ in case["changes_iter_consumed_gbs_micro"]:
            assert ramp(consumed) == batch


def test_known_points_of_the_published_run() -> None:
    schedule = LearningRate(6e-5, 6e-6, 183_105, 200_000_000)
    assert schedule(9_841_584) == pytest.approx(5.969e-5, rel=1e-4)
    assert schedule(158_692_272) == pytest.approx(1.150e-5, rel=1e-3)
    assert schedule(0) == 0.0 and schedule(183_105) == 6e-5 and schedule(10**9) == 6e-6


def test_third_published_point_of_the_learning_rate() -> None:
    """5.279E-05 after 47.77 million samples, both rounded: the rate moves by less than the last digit in between."""
    schedule = LearningRate(6e-5, 6e-6, 183_105, 200_000_000)
    assert schedule(47_770_000) == pytest.approx(5.279e-5, abs=5e-9)


def test_the_published_run_step_by_step() -> None:
    """12,658 steps of the ramp, 9,841,584 samples after step 12,695, 158,692,272 after 85,376, 115,311 in all."""
    ramp = BatchSize(2048, 192, 16, 9_765_625)
    consumed, steps, full, seen = 0, 0, 0, {}
    while consumed + ramp(consumed) <= 220_000_000:
        full = full or (steps if ramp(consumed) == 2048 and consumed > 9_765_625 else 0)
        consumed, steps = consumed + ramp(consumed), steps + 1
        seen[steps] = consumed
    assert (full, steps, seen[12_695], seen[85_376]) == (12_658, 115_311, 9_841_584, 158_692_272)


def test_gopher_doubles_its_batch_once() -> None:
    ramp = BatchSize(3072, 1536, 1536, 73_242_624)
    assert {ramp(consumed) for consumed in range(0, 150_000_000, 1536)} == {1536, 3072}
    assert ramp(73_242_623) == 1536 and ramp(73_242_625) == 3072


def test_constant_batch_drops_what_is_left_over() -> None:
    assert [BatchSize(4, 4).steps(samples) for samples in (4, 7, 8, 11)] == [1, 1, 2, 2]
