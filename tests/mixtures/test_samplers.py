"""Samplers: golden numbers of the sequential ones, and independence from ranks and interruptions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixtures.samplers import ConsecutiveSampler, ShuffledSampler, full_validation_slice, rank_slice
from roots_pipeline.core.errors import MixtureError
from tests.mixtures.golden import load


def test_golden_sequential(shared: Path) -> None:
    for case in load(shared, "08_samplers")["sequential"]:

        def ranks(case: dict[str, int] = case) -> list[list[list[int]]]:
            return [
                list(ConsecutiveSampler(
                    case["total"], case["consumed"], case["micro_batch"], rank, case["dp"], bool(case["drop_last"])
                ))
                for rank in range(case["dp"])
            ]  # fmt: skip

        if isinstance(case["ranks"], str):
            with pytest.raises(MixtureError, match="all 8 samples are consumed"):
                ranks()
        else:
            assert ranks() == case["ranks"], case


def test_golden_random(shared: Path) -> None:
    golden = load(shared, "08_samplers")
    for case in golden["random"]:
        for name, sharded in (("bigscience", True), ("current_data_sharding_true", True),
                              ("current_data_sharding_false", False)):  # fmt: skip
            wanted = case["bigscience"] if case[name] == "identical" else case[name]
            samplers = [
                ShuffledSampler(case["total"], case["consumed"], case["micro_batch"], rank, case["dp"], sharded)
                for rank in range(case["dp"])
            ]
            if isinstance(wanted, str) or isinstance(wanted["ranks"], str):
                with pytest.raises(MixtureError):
                    list(samplers[0])
                continue
            found = [list(sampler) for sampler in samplers]
            assert found == wanted["ranks"], (name, case)
            step = case["micro_batch"] * case["dp"]
            assert [case["consumed"] + step * len(batches) for batches in found] == wanted["consumed_after"]


def test_golden_permutations(shared: Path) -> None:
    for seed, sizes in load(shared, "08_samplers")["torch_randperm"].items():
        for size, wanted in sizes.items():
            # One rank with micro-batches of one reads exactly the permutation of its epoch.
            size, epoch = int(size), int(seed)
            assert [number for batch in ShuffledSampler(size, epoch * size, 1, 0, 1) for number in batch] == wanted


def test_an_epoch_of_the_shuffled_sampler_reads_everything_once() -> None:
    for sharded in (True, False):
        samplers = [ShuffledSampler(24, 48, 2, rank, 3, sharded) for rank in range(3)]
        assert sorted(number for sampler in samplers for batch in sampler for number in batch) == [*range(24)]
    with pytest.raises(MixtureError, match="do not fill one step of 6"):
        list(ShuffledSampler(5, 0, 2, 0, 3))
    with pytest.raises(MixtureError, match="no whole number of steps"):
        list(ShuffledSampler(24, 50, 2, 0, 3))


def test_golden_full_validation_and_global_batches(shared: Path) -> None:
    golden = load(shared, "08_samplers")
    for case in golden["current_full_validation"]:
        found = [[[n] for n in full_validation_slice(case["total"], rank, case["dp"])] for rank in range(case["dp"])]
        assert found == case["ranks"]
    for case in golden["current_hybrid_cp"]:  # a whole global batch a step, made of micro-batches
        step, size = case["micro_batch"] * case["dp"], case["global_batch"]
        starts = range(case["consumed"], case["total"] - size + 1, size)
        found = [
            [
                [n for first in range(start, start + size, step)
                 for n in rank_slice(first, case["micro_batch"], rank, case["total"])]
                for start in starts
            ]
            for rank in range(case["dp"])
        ]  # fmt: skip
        assert found == case["ranks"]


@given(
    st.integers(1, 300),
    st.integers(0, 299),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), min_size=1, max_size=4),
)
def test_the_order_does_not_depend_on_ranks_or_interruptions(
    total: int, consumed: int, layouts: list[tuple[int, int]]
) -> None:
    consumed = min(consumed, total - 1)
    seen, position = [], consumed
    for micro_batch, ranks in layouts:  # each layout trains two steps, then the run is resumed with the next one
        if position >= total:
            break
        batches = [list(ConsecutiveSampler(total, position, micro_batch, rank, ranks, False)) for rank in range(ranks)]
        for step in range(min(2, len(batches[0]))):
            seen += [number for rank in range(ranks) for number in batches[rank][step]]
            position += micro_batch * ranks
    assert seen == [*range(consumed, min(position, total))]


def test_impossible_layouts() -> None:
    with pytest.raises(MixtureError, match="no rank 2 of 2"):
        ConsecutiveSampler(10, 0, 1, 2, 2)
    with pytest.raises(MixtureError, match="micro-batches of 0"):
        ConsecutiveSampler(10, 0, 0, 0, 1)
