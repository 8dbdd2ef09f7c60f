"""The planner against published figures, closed forms, and counts of real models."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.planner_memory import CONFIGURATIONS
from benchmarks.planner_memory import settings as measured_settings
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import load_section
from roots_pipeline.plan import Prediction, RunPlan
from tests.train.test_commands import command
from train.config import RECIPES, TrainConfig
from train.model.shape import checkpoint_bytes, hardware_flops_per_token, model_flops_per_token, parameter_count
from train.parallel.layout import Layout
from train.planner.costs import Assumptions, best_interval, bill, expected_goodput
from train.planner.goodput import enough_spares
from train.planner.hardware import load_hardware
from train.planner.memory import (
    bytes_per_parameter,
    inference_memory,
    largest_memory,
    stage_blocks,
    stage_memory,
    stage_parameters,
)
from train.planner.sheet import layouts, plan_run
from train.planner.simulation import Cluster, pipeline_seconds, simulate
from train.planner.speed import bubble_seconds, bubble_share, gopher_flops, stage_seconds, step_time

ROWS = {"bloom": 250_880, "gopher": 32_000}
GOPHER_BYTES = 2 + 4 + 4  # bfloat16 weights and two moments, no float32 weights
JEAN_ZAY = Layout(data=8, tensor=4, pipeline=12)


def recipe(name: str) -> TrainConfig:
    return load_section(name, "train", TrainConfig, RECIPES)


BLOOM = recipe("bloom-176b").shape(250_880)


def test_published_figures_of_bloom() -> None:
    """2.82 TB, 352.5 GB, 8.22 GB, 2.3 TB on disk, 27.5 GB a GPU before activations, a bubble of 7.9%."""
    parameters = parameter_count(BLOOM)
    assert 16 * parameters / 1e12 == pytest.approx(2.82, abs=0.001)
    memory = inference_memory(BLOOM, 2048, 1)
    assert memory["weights"] / 1e9 == pytest.approx(352.5, abs=0.02)
    assert memory["cache"] / 1e9 == pytest.approx(8.22, abs=0.005)
    assert checkpoint_bytes(parameters, "bf16") / 2**30 == pytest.approx(2298, abs=0.5)
    assert parameters / 48 * bytes_per_parameter("bf16", 8) / 1e9 == pytest.approx(27.5, abs=0.05)
    assert bubble_share(12, 2048 // (2 * 8)) == pytest.approx(0.079, abs=0.0005)


def test_published_figures_of_gopher() -> None:
    """10.74 GB of keys and values, 560 GB, 2.546 TiB of state at 10 bytes, 4.48 TB, 6.31E+08 PFLOPs."""
    shape = recipe("gopher-280b").shape(32_000)
    memory = inference_memory(shape, 2048, 1)
    assert memory["cache"] / 1e9 == pytest.approx(10.74, abs=0.005)
    parameters = parameter_count(shape)  # the published figures take them for 280 billion
    assert memory["weights"] / 1e9 == pytest.approx(560, rel=0.002)
    assert 16 * parameters / 1e12 == pytest.approx(4.48, rel=0.002)
    assert GOPHER_BYTES * parameters / 2**40 == pytest.approx(2.546, rel=0.002)
    assert gopher_flops(shape, 2048, 300e9) == pytest.approx(4.755e23, rel=5e-4)
    whole = gopher_flops(shape, 2048, 300e9, embeddings=False, recomputed=True)
    assert whole / 1e15 == pytest.approx(6.31e8, rel=1e-3)
    assert whole / (920 * 3600 * 4096) / 1e12 == pytest.approx(46.5, abs=0.1)  # TFLOP/s of a TPU


def test_published_energy_is_rated_power_times_hours() -> None:
    found = bill(1_082_990 / 384 * 3600, 384, 400, Assumptions(pue=1.0))
    assert found.kwh == pytest.approx(433_196, abs=0.5) and found.gpu_hours == pytest.approx(1_082_990)
    assert found.days == pytest.approx(117.5, abs=0.02)


def test_step_of_the_published_layout_is_near_the_logged_one() -> None:
    """105.22 seconds. The efficiency of the A100 was chosen with this run, so this only guards against drift."""
    config, hardware = recipe("bloom-176b"), load_hardware("a100-80gb")
    time = step_time(BLOOM, config, JEAN_ZAY, hardware)
    assert time.total == pytest.approx(105.22, rel=0.01)
    assert 11 / 139 < time.bubble_share < 0.1  # the last stage has the head, and the others wait for it
    assert largest_memory(BLOOM, config, JEAN_ZAY).total / 2**30 < 59  # measured; theirs kept more


@pytest.mark.parametrize("name", ["bloom-560m", "bloom-176b", "gopher-44m", "gopher-280b"])
@pytest.mark.parametrize("pipeline", [1, 2])
def test_stages_hold_the_parameters_of_the_model(name: str, pipeline: int) -> None:
    config = recipe(name)
    shape = config.shape(ROWS[config.model.kind])
    layout = Layout(pipeline=pipeline)
    found = sum(stage_parameters(shape, layout, stage) for stage in range(pipeline))
    assert found == parameter_count(shape) + (pipeline - 1) * shape.vocabulary * shape.hidden  # both copies
    assert sum(stage_blocks(shape.layers, pipeline)) == shape.layers


def test_stages_of_bloom_are_six_blocks_each() -> None:
    assert stage_blocks(70, 12) == [5, *[6] * 10, 5]
    later = [stage_memory(BLOOM, recipe("bloom-176b"), JEAN_ZAY, stage).activations for stage in range(1, 11)]
    assert all(one > other for one, other in pairwise(later))  # fewer micro-batches are alive further on


def test_recomputation_and_sharding_save_memory() -> None:
    config = recipe("bloom-1b7").model_copy(update={"micro_batch": 4})
    shape = config.shape(250_880)
    by_mode = {
        mode: largest_memory(shape, config.model_copy(update={"activation_checkpointing": mode}), Layout(8)).activations
        for mode in ("none", "selective", "full")
    }
    assert by_mode["none"] > by_mode["selective"] > 2 * by_mode["full"]
    one, eight = (largest_memory(shape, config, Layout(data)) for data in (1, 8))
    assert one.optimizer == 8 * eight.optimizer and one.weights == eight.weights


@pytest.mark.parametrize("number, mebibytes", list(enumerate([512, 512, 272, 547, 489, 644, 577, 371])))
def test_memory_is_that_of_measured_processes(number: int, mebibytes: float) -> None:
    """Growth of real processes on a CPU, as benchmarks/planner_memory.py measured it."""
    rows, data = CONFIGURATIONS[number][2], CONFIGURATIONS[number][6]
    config = measured_settings(number)
    found = largest_memory(config.shape(rows), config, config.layout(data), "cpu")
    assert found.total / 2**20 == pytest.approx(mebibytes, rel=0.1)
    assert found.state < found.total < found.state + found.activations + found.loss + found.update


def test_only_layouts_that_the_trainer_accepts_are_offered() -> None:
    config, hardware = recipe("bloom-176b"), load_hardware("a100-80gb")
    found = layouts(config, 250_880, 384, hardware)
    assert any(one.layout == JEAN_ZAY and one.micro_batch == 2 and one.fits for one in found)
    for one in found:
        assert one.layout.processes == 384 and 112 % one.layout.tensor == 0 and one.layout.tensor <= 8
        changed = {"tensor_parallel": one.layout.tensor, "pipeline_parallel": one.layout.pipeline,
                   "micro_batch": one.micro_batch}  # fmt: skip
        assert TrainConfig.model_validate({**config.model_dump(), **changed}).layout(384) == one.layout
    times = [one.time.total for one in found if one.fits]
    assert times == sorted(times)
    with pytest.raises(RecipeError, match="no layout fits: the smallest needs"):
        plan_run(config, 250_880, 8, hardware)
    with pytest.raises(RecipeError, match="Did you mean 'a100-80gb'"):
        load_hardware("a100-80g")
    with pytest.raises(RecipeError, match="does not compute in bf16"):
        plan_run(config, 250_880, 384, load_hardware("v100-32gb"))


def test_command_prints_a_sheet_and_json() -> None:
    arguments = ("plan", "bloom-176b", "--gpus", "384", "--gpu", "a100-80gb")
    text = command(*arguments).stdout
    assert "115,311 steps" in text and "352.5 GB of weights" in text and "tensor 4 x pipeline 12" in text
    facts = json.loads(command(*arguments, "--json", "--layouts", "2").stdout)
    assert len(facts["candidates"]) == 2 and facts["parameters"] == 176_247_271_424
    assert 100 < facts["bill"]["days"] < 140 and facts["state_bytes"] == 2 + 4 + 12 / 4 and facts["paper_flops"] is None
    paper = "6.31e+23 operations as its paper counts"
    assert paper in command("plan", "gopher-280b", "--gpus", "4096", "--vocabulary", "32000").stdout
    refused = command("plan", "bloom-176b", "--gpus", "7")
    assert isinstance(refused.exception, RecipeError)


def test_hardware_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("x: {memory_gib: 1, tflops: {bf16: 1}, efficiency: 2, watts: 1, node: {}}")
    with pytest.raises(RecipeError, match=r"x\.efficiency: "):
        load_hardware("x", path)
    path.write_text("y: {}")
    with pytest.raises(RecipeError, match="there is no GPU 'x'"):
        load_hardware("x", path)


@pytest.mark.parametrize(("text", "words"), [
    (b"- 1", "describes no GPUs"), (b"tasks: " + b"[" * 3000, "cannot be read"), (b"x: \xff", "cannot be read"),
])
def test_a_file_that_describes_no_hardware_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_bytes(text)
    with pytest.raises(RecipeError, match=words):
        load_hardware("x", path)


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 5), (2, 1), (4, 4), (12, 128), (8, 3)])
def test_simulated_pipeline_equals_the_closed_form(stages: int, micro_batches: int) -> None:
    """(m + p - 1) (f + b) for equal stages and no transfers."""
    seconds = pipeline_seconds([1.0] * stages, [2.0] * stages, micro_batches)
    assert seconds == pytest.approx((micro_batches + stages - 1) * 3.0)
    assert 1 - micro_batches * 3.0 / seconds == pytest.approx(bubble_share(stages, micro_batches))
    assert bubble_seconds([3.0] * stages, micro_batches) == pytest.approx(seconds - micro_batches * 3.0)


@pytest.mark.parametrize("name", ["bloom-176b", "bloom-560m", "gopher-280b"])
@pytest.mark.parametrize("layout", [Layout(8, 4, 12), Layout(1, 2, 2), Layout(4, 1, 1)])
def test_formula_of_a_step_is_that_of_its_stages(name: str, layout: Layout) -> None:
    """Work of the stages adds up to that of the step; waiting is what the simulation finds, transfers left out."""
    changes = {"tensor_parallel": layout.tensor, "pipeline_parallel": layout.pipeline, "micro_batch": 1}
    config = recipe(name).model_copy(update=changes)
    shape, hardware = config.shape(ROWS[config.model.kind]), load_hardware("a100-80gb")
    forward, backward, transfer = stage_seconds(shape, config, layout, hardware)
    micro_batches = config.global_batch // layout.data
    time = step_time(shape, config, layout, hardware)
    work = micro_batches * (sum(forward) + sum(backward)) / layout.pipeline
    assert work == pytest.approx(time.compute + time.tensor)
    per_token = (
        hardware_flops_per_token(shape, 2048, recomputed=True)
        if config.activation_checkpointing == "full"
        else model_flops_per_token(shape, 2048)
    )
    flops = config.global_batch * 2048 * per_token / layout.processes
    assert time.compute == pytest.approx(flops / hardware.peak(config.precision) / hardware.efficiency)
    played = pipeline_seconds(forward, backward, micro_batches)
    assert played == pytest.approx(work + time.bubble, rel=0.01)
    assert 2 * micro_batches * transfer * (layout.pipeline > 1) == pytest.approx(time.pipeline)


def test_the_longest_stage_sets_the_pace() -> None:
    seconds = pipeline_seconds([1.0, 2.0, 1.0], [2.0, 4.0, 2.0], 100)
    assert seconds == pytest.approx(12.0 + 99 * 6.0, rel=0.005)  # its first backward pass may come a little earlier
    assert bubble_seconds([3.0, 6.0, 3.0], 100) == pytest.approx(12.0 + 99 * 6.0 - 100 * 4.0)
    assert pipeline_seconds([1.0] * 4, [2.0] * 4, 8, transfer=0.5) > pipeline_seconds([1.0] * 4, [2.0] * 4, 8)


@pytest.mark.parametrize("nodes", [10, 100, 1000, 10_000])
def test_simulated_goodput_equals_the_closed_form(nodes: int) -> None:
    """With spares enough and failures also during restarts it is Daly's expectation."""
    mtbf, save, restart = 8000 * 3600.0, 40.0, 900.0
    interval = best_interval(save, mtbf / nodes)
    cluster = Cluster(nodes, 10**6, mtbf, 3600.0, restart, save, interval)
    found = simulate(cluster, work=3000 * mtbf / nodes, seed=nodes)
    expected = expected_goodput(interval, save, restart, mtbf / nodes)
    assert found.kept == pytest.approx(expected, rel=0.02) and found.failures > 2000
    shares = found.kept + found.saving + found.repeated + found.restarting + found.waiting
    assert shares == pytest.approx(1.0) and found.waiting == 0.0


def test_best_interval_loses_least() -> None:
    for save, mtbf in ((40.0, 1e5), (40.0, 3e3), (300.0, 5e3)):
        interval = best_interval(save, mtbf)
        best = expected_goodput(interval, save, 600.0, mtbf)
        others = [expected_goodput(interval * factor, save, 600.0, mtbf) for factor in (0.5, 0.8, 1.3, 2)]
        assert max(others) <= best + 1e-4
        assert interval == pytest.approx(math.sqrt(2 * save * mtbf), rel=0.35)


def test_too_few_spares_make_the_run_wait() -> None:
    common = {"nodes": 1000, "node_mtbf": 8000 * 3600.0, "repair": 3 * 86400.0, "restart": 900.0, "save": 40.0,
              "interval": 1500.0}  # fmt: skip
    found = [simulate(Cluster(spares=spares, **common), work=60 * 86400.0, seed=3) for spares in (0, 4, 30)]  # type: ignore[arg-type]
    assert found[0].waiting > found[1].waiting > found[2].waiting == 0.0
    assert found[0].kept < found[1].kept < found[2].kept


@pytest.mark.parametrize("repaired_at_once", [0.0, 0.144, 3.0, 30.0, 3000.0])
def test_spares_that_suffice_for_99_of_100_failures(repaired_at_once: float) -> None:
    """A failure finds a spare if fewer than all of them are missing: a Poisson distribution, drawn."""
    enough = enough_spares(repaired_at_once)
    drawn = np.random.default_rng(1).poisson(repaired_at_once, 200_000)
    assert np.mean(drawn < enough) > 0.989 and (enough == 1 or np.mean(drawn < enough - 1) < 0.991)


def test_simulation_of_a_recipe_from_ten_to_ten_thousand_nodes() -> None:
    """Kept shares are Daly's where a spare was always there, and less where not; a layout is named or refused."""
    rows = json.loads(command("simulate", "bloom-176b", "--json").stdout)
    assert [row["nodes"] for row in rows] == [10, 100, 1000, 10_000]
    for row in rows:
        found = row["simulated"]
        assert found["kept"] == pytest.approx(row["closed_form"], rel=0.02) and found["waiting"] < 0.005
        assert row["low"] <= found["kept"] <= row["high"]
        losses = sum(found[name] for name in ("saving", "repeated", "restarting", "waiting"))
        assert found["kept"] + losses == pytest.approx(1)
    kept = [row["simulated"]["kept"] for row in rows]
    assert kept == sorted(kept, reverse=True)
    step = rows[0]["step"]
    assert step["layout"]["tensor"] * step["layout"]["pipeline"] * step["layout"]["data"] == 80
    assert step["seconds"] == pytest.approx(step["formula_seconds"], rel=0.03) and rows[0]["days"] > 600
    assert rows[3]["step"] is None and "80000 GPUs cannot be arranged" in rows[3]["no_step"] and rows[3]["days"] is None
    lonely = json.loads(command("simulate", "bloom-176b", "--nodes", "48", "--spares", "0", "--json").stdout)[0]
    assert lonely["simulated"]["waiting"] > 0.05 and lonely["closed_form"] - lonely["simulated"]["kept"] > 0.05


def test_simulation_for_people() -> None:
    text = command("simulate", "bloom-176b", "--nodes", "48", "--spares", "1", "--trials", "3").stdout
    assert "data 4 x tensor 8 x pipeline 12" in text and "For that in 99% of all failures: 2 for 48 nodes." in text
    text = command("simulate", "bloom-560m", "--nodes", "1000000", "--days", "1").stdout
    assert "something fails every 29 seconds: next to nothing is kept" in text
    assert "No layout for this size: 8000000 GPUs cannot be arranged" in text
    repeated = [command("simulate", "bloom-1b1", "--nodes", "3", "--seed", "7", "--json").stdout for _ in range(2)]
    assert repeated[0] == repeated[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "bloom-176b", "--gpu", "v100-32gb"), "does not compute in bf16"),
        (("plan", "bloom-176b", "--gpus", "384", "--node-mtbf-hours", "1"), "something fails every 75 seconds"),
    ],
)
def test_impossible_questions(arguments: tuple[str, ...], message: str) -> None:
    error = command(*arguments).exception
    assert isinstance(error, RecipeError) and message in str(error)


@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "-1"])
@pytest.mark.parametrize("option", ["--node-mtbf-hours", "--repair-hours", "--write-gbytes", "--spares", "--nodes"])
def test_numbers_beyond_all_reason(option: str, value: str) -> None:
    assert command("simulate", "bloom-176b", option, value).exit_code == 2


def test_the_corpus_planners_forecast_is_part_of_the_sheet(tmp_path: Path) -> None:
    prediction = Prediction(10**6, 7200.0, 3600.0, 5 * 10**9, 2 * 10**9, 0.25)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(asdict(RunPlan((), (), 2, prediction))))
    arguments = ("plan", "bloom-560m", "--gpus", "8", "--corpus-plan", str(plan))
    text = command(*arguments).stdout
    assert "CPU-hours          2.00" in text and "1.00 hours with 2 workers" in text
    assert "25.0% of the documents" in text
    assert json.loads(command(*arguments, "--json").stdout)["corpus"]["prediction"]["cpu_seconds"] == 7200
    for wrong in ("{}", "no", '{"workers": 0, "prediction": {}}', "[1]"):
        plan.write_text(wrong)
        assert isinstance(command(*arguments).exception, RecipeError), wrong
    assert isinstance(command(*arguments[:-1], str(tmp_path / "absent.json")).exception, RecipeError)
