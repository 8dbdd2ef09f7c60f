"""Two processes compute what one does, and continue where they stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
import torch.nn.functional as F

from tests.train.scenario import numbers, settings, train
from train.parallel.tensor import TensorParallel, initial_shard


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, project: Path) -> dict[str, Any]:
    """Results of the scenarios in `two_processes`."""
    folder = tmp_path_factory.mktemp("two")
    start = "import sys; from train.launch import run_workers; sys.exit(run_workers(2, sys.argv[1:]))"
    command = [sys.executable, "-c", start, "tests.train.two_processes", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert (done.stdout, done.stderr) == ("", "")  # DeepSpeed and torchrun are silent
    results: dict[str, Any] = orjson.loads((folder / "results.json").read_bytes())
    return results


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[float, ...]]:
    """The same run in this process."""
    return numbers(train(settings(), tmp_path_factory.mktemp("one") / "run"))


@pytest.mark.parametrize("layout", ["data", "tensor", "pipeline", "pipeline_recomputed"])
def test_every_layout_gives_the_losses_and_gradient_norms_of_one_process(
    two: dict[str, Any], one: list[tuple[float, ...]], layout: str
) -> None:
    assert len(one) == 11  # 8 steps, validation before, in the middle and at the end
    for mine, alone in zip(numbers(two[layout]), one, strict=True):
        assert mine == pytest.approx(alone, rel=1e-5, abs=1e-5)


def test_bf16_stays_near_fp32(two: dict[str, Any], one: list[tuple[float, ...]]) -> None:
    for mine, alone in zip(numbers(two["tensor_bf16"]), one, strict=True):
        assert mine == pytest.approx(alone, rel=2e-2)


@pytest.mark.parametrize("layout", ["data", "tensor", "pipeline", "tensor_dropout"])
def test_stopped_and_resumed_equals_uninterrupted_digit_for_digit(two: dict[str, Any], layout: str) -> None:
    assert numbers(two[f"{layout}_resumed"]) == numbers(two[layout])


def test_batch_ramp_grows_the_batch_in_the_middle_of_a_run(two: dict[str, Any], tmp_path: Path) -> None:
    config = settings(batch_ramp={"start": 4, "increment": 4, "samples": 10}, global_batch=8, steps=4)
    alone = numbers(train(config, tmp_path / "run"))
    assert [record["global_batch"] for record in two["data_ramp"] if "loss" in record] == [4, 4, 4, 8, 8]
    for mine, other in zip(numbers(two["data_ramp"]), alone, strict=True):
        assert mine == pytest.approx(other, rel=1e-5, abs=1e-5)


def test_copies_that_drift_apart_stop_the_run_at_the_next_save(two: dict[str, Any]) -> None:
    assert "processes 0 and 1 hold different copies of 2.input_layernorm.weight" in two["drift"]


def test_a_signal_to_one_process_stops_all_after_the_same_step(two: dict[str, Any]) -> None:
    assert two["signalled"][-1]["step"] == 3 and numbers(two["signalled"]) == numbers(two["data"])[:4]


def test_a_slow_process_is_named(two: dict[str, Any]) -> None:
    assert len(two["slow"]) == 1 and two["slow"][0].startswith("process 1 on ") and "1.33 times" in two["slow"][0]


def test_a_collective_operation_gives_up_at_its_limit(two: dict[str, Any]) -> None:
    """Also in the groups that DeepSpeed makes, which know nothing of it."""
    assert 0.9 < two["late"] < 3.5


def test_loss_of_a_vocabulary_cut_over_processes_equals_the_whole(two: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(7, 5, generator=generator).requires_grad_()
    weight = torch.randn(12, 5, generator=generator).requires_grad_()
    labels = torch.randint(0, 12, (7,), generator=generator)
    loss = F.cross_entropy(hidden @ weight.T, labels)
    loss.backward()  # type: ignore[no-untyped-call]
    found = two["loss"]
    assert found["loss"] == pytest.approx(loss.item(), abs=1e-6)
    torch.testing.assert_close(torch.tensor(found["hidden"]), hidden.grad, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(torch.tensor(found["weight"]), weight.grad, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("size", [2, 4])
def test_initial_values_do_not_depend_on_the_layout(dim: int, size: int) -> None:
    shape = (2100, 8) if dim == 0 else (1500, 16)  # more rows than are drawn at once
    whole = initial_shard("a.matrix", shape, 0.5, 7, TensorParallel(), dim)
    parts = [initial_shard("a.matrix", shape, 0.5, 7, TensorParallel(size, rank), dim) for rank in range(size)]
    assert torch.equal(torch.cat(parts, dim), whole)
    assert abs(whole.std().item() - 0.5) < 0.02 and abs(whole.mean().item()) < 0.02
    assert not torch.equal(initial_shard("another.matrix", shape, 0.5, 7, TensorParallel(), dim), whole)
    assert not torch.equal(initial_shard("a.matrix", shape, 0.5, 8, TensorParallel(), dim), whole)
