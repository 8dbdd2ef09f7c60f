"""Which parameters decay, and the rounding of weights that exist in bfloat16 only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.train.scenario import VOCABULARY, numbers, settings, train
from train.engine import build_engine
from train.optimizer import StochasticAdamW, parameter_groups, rounded, whole_numbers
from train.parallel.tensor import TensorParallel, cut_parameter
from train.parallel.topology import connect


@pytest.mark.parametrize("kind", ["bloom", "gopher"])
def test_only_matrices_decay_and_no_norm_does(kind: str) -> None:
    """The LayerNorm after the embedding decayed in BLOOM's run, until a restart made the loss jump."""
    config = settings(model={"kind": kind, "hidden": 32, "layers": 2, "heads": 4})
    model = build_engine(config, VOCABULARY, connect(config.layout(1))).module
    decayed, kept = parameter_groups(model, 0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    if kind == "bloom":
        assert {"1.norm.weight", "1.norm.bias"} <= {names[id(parameter)] for parameter in kept["params"]}
    for parameter in decayed["params"]:
        assert names[id(parameter)].endswith("weight") and "norm" not in names[id(parameter)]
    for parameter in kept["params"]:
        assert "norm" in names[id(parameter)] or names[id(parameter)].endswith("bias")
    assert len(decayed["params"]) + len(kept["params"]) == len(names)


def noise(count: int) -> torch.Tensor:
    return torch.randint(0, 65536, (count,), dtype=torch.int32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("value", [1.0 + 2**-10, -(1.0 + 2**-10), 3e-39, 0.1, -7.7e8])
def test_rounding_is_to_a_neighbour_and_right_on_average(value: float) -> None:
    values = torch.full((200_000,), value)
    found = rounded(values, noise(len(values)))
    assert torch.equal(found, found.bfloat16().float())
    below = (values.view(torch.int32) & -65536).view(torch.float32)[0]
    step = ((values.view(torch.int32) & -65536) + 65536).view(torch.float32)[0] - below
    assert set(found.unique().tolist()) <= {below.item(), (below + step).item()}
    assert abs(found.double().mean().item() - values[0].item()) < abs(step.item()) * 0.01


def test_what_needs_no_rounding_and_what_is_no_number_stays() -> None:
    values = torch.tensor([0.0, 1.0, -2.5, float("inf"), -float("inf"), float("nan")])
    found = rounded(values, torch.full((6,), 65535, dtype=torch.int32))
    torch.testing.assert_close(found, values, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("shape", "dim"), [((12, 5), 0), ((5, 12), 1), ((12,), 0), ((7, 3), None)])
def test_a_part_has_the_numbers_it_has_in_the_whole(shape: tuple[int, ...], dim: int | None) -> None:
    whole = torch.arange(torch.Size(shape).numel()).view(shape)
    for rank in range(4):
        part = whole if dim is None else whole.chunk(4, dim)[rank]
        parameter = part.float() if dim is None else cut_parameter(part.float(), dim)
        own = torch.arange(part.numel())
        assert torch.equal(whole_numbers(own, parameter, TensorParallel(4, rank)), part.flatten())


def test_steps_leave_bfloat16_values_and_small_updates_are_not_lost() -> None:
    config = settings(precision="bf16-stochastic", lr=1e-5, min_lr=1e-5, warmup_samples=0, weight_decay=0.0)
    engine = build_engine(config, VOCABULARY, connect(config.layout(1)))
    optimizer = engine.optimizer.optimizer
    assert isinstance(optimizer, StochasticAdamW)
    weights = engine.optimizer.fp32_groups_flat_partition[0]
    before = weights.detach().clone()
    for group in optimizer.param_groups:
        group["lr"] = 1e-5
    for _ in range(30):
        for partition in engine.optimizer.fp32_groups_flat_partition:
            partition.grad = torch.ones_like(partition)
        optimizer.step()
    assert torch.equal(weights, weights.bfloat16().float())
    large = before.abs() > 0.02  # here half of a step of bfloat16 is more than six updates
    assert (weights - before)[large].mean().item() == pytest.approx(-30e-5, rel=0.05)


def test_a_stopped_run_rounds_as_an_uninterrupted_one(tmp_path: Path) -> None:
    config = settings(precision="bf16-stochastic", evaluate_every=0, validation_samples=0)
    whole = numbers(train(config, tmp_path / "whole"))
    train(config, tmp_path / "stopped", stop_after=5)
    assert numbers(train(config, tmp_path / "stopped")) == whole
    other = numbers(train(settings(precision="bf16", evaluate_every=0, validation_samples=0), tmp_path / "other"))
    assert other != whole and other[0] == whole[0]
