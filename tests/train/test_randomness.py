"""Dropout's numbers: known values, statistics, and what they may depend on."""

from __future__ import annotations

import pytest
import torch

from roots_pipeline.core.errors import TrainingError
from train.model.randomness import Randomness, mixed, random_bits, recomputed


def test_hashes_are_those_of_splitmix64() -> None:
    """The first outputs of the generator with state 1234567, as published with other implementations of it."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    words = random_bits(torch.tensor([1234567]), 4, 20).view(torch.int64)[0]
    assert [int(word) % 2**64 for word in words] == known


def test_mixing_is_one_to_one_and_moves_half_of_the_bits() -> None:
    states = torch.arange(100_000) * 3
    assert len(mixed(states).unique()) == len(states)
    moved = mixed(states) ^ mixed(states ^ 1)
    bits = sum(((moved >> place) & 1).double().mean().item() for place in range(64))
    assert bits == pytest.approx(32, abs=0.1)


@pytest.mark.parametrize("first", range(7))
def test_a_part_of_a_stream_is_that_part_of_the_whole(first: int) -> None:
    keys = torch.tensor([[5, -9], [2**62, 7]])
    assert torch.equal(random_bits(keys, first, 10), random_bits(keys, 0, 30)[..., first : first + 10])


def test_the_rate_and_the_mean_are_kept() -> None:
    randomness = Randomness(3)
    values = torch.ones(4, 250_000)
    with randomness.of(torch.arange(4)):
        for rate in (0.1, 0.5):
            dropped = randomness.drop(values, rate, "here")
            assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=2e-3)
            assert dropped.mean().item() == pytest.approx(1.0, abs=5e-3)
            assert torch.corrcoef((dropped == 0).float()).sub(torch.eye(4)).abs().max() < 0.01
        assert randomness.drop(values, 0.0, "here") is values


def test_numbers_follow_from_seed_place_sample_and_head_alone() -> None:
    values = torch.ones(4, 6, 8, 8)

    def heads(seed: int, name: str, samples: list[int], first: int, count: int) -> torch.Tensor:
        randomness = Randomness(seed)
        with randomness.of(torch.tensor(samples)):
            return randomness.drop_by_head(values[: len(samples), :count], 0.5, name, first=first)

    whole = heads(1, "a", [10, 11, 12, 13], 0, 6)
    assert torch.equal(heads(1, "a", [12, 10], 2, 3), whole[[2, 0], 2:5])
    for other in (heads(2, "a", [10, 11, 12, 13], 0, 6), heads(1, "b", [10, 11, 12, 13], 0, 6)):
        assert (other != whole).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert (whole[0] != whole[1]).any() and (whole[:, 0] != whole[:, 1]).any()


def test_a_part_of_the_sequence_drops_what_the_whole_does() -> None:
    randomness, values = Randomness(), torch.ones(2, 6, 5)
    with randomness.of(torch.tensor([4, 5])):
        whole = randomness.drop(values, 0.5, "here")
        assert torch.equal(randomness.drop(values[:, 3:], 0.5, "here", first=3 * 5), whole[:, 3:])


def test_recomputation_drops_what_the_first_run_did() -> None:
    randomness = Randomness()
    values = torch.randn(2, 50, requires_grad=True)
    with randomness.of(torch.tensor([4, 5])):
        kept = recomputed(lambda x: randomness.drop(x.sin(), 0.5, "here"), values, randomness=randomness)
        plain = torch.autograd.grad(randomness.drop(values.sin(), 0.5, "here").sum(), values)[0]
    with randomness.of(torch.tensor([6, 7])):
        assert torch.equal(torch.autograd.grad(kept.sum(), values)[0], plain)
        assert randomness.samples is not None and randomness.samples.tolist() == [6, 7]


def test_without_samples_dropout_says_what_is_missing() -> None:
    with pytest.raises(TrainingError, match="begin_step"):
        Randomness().drop(torch.ones(2, 3), 0.5, "here")
