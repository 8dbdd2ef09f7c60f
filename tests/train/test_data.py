"""Which process reads which samples, and the entropy of the tokens."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from train.data import micro_batches
from train.schedule import BatchSize
from train.skips import Skips, continues, count_steps
from train.validation import ValidationSet, count_tokens


class Numbered:
    """Sample i holds the number i, plus its position."""

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        return np.arange(5, dtype=np.int64) + 10 * index


def read(consumed: int, batch: int, micro: int, rank: int, ranks: int) -> list[list[int]]:
    return [
        (inputs[:, 0] // 10).tolist()
        for inputs, _ in micro_batches(Numbered(), range(consumed, consumed + batch), micro, rank, ranks)
    ]


def test_labels_are_the_inputs_shifted_by_one() -> None:
    inputs, labels = next(micro_batches(Numbered(), [3, 4], 2, 0, 1))
    assert inputs.tolist() == [[30, 31, 32, 33], [40, 41, 42, 43]] and torch.equal(inputs + 1, labels)
    assert inputs.dtype == torch.int64


@pytest.mark.parametrize(("micro", "ranks"), [(1, 1), (2, 1), (1, 4), (2, 2), (4, 2), (8, 1)])
def test_a_step_reads_the_next_samples_once_whatever_the_layout(micro: int, ranks: int) -> None:
    seen = [sample for rank in range(ranks) for part in read(100, 8, micro, rank, ranks) for sample in part]
    assert sorted(seen) == list(range(100, 108))


def test_slices_equal_the_original_sampler(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "megatron" / "08_samplers.json").read_text())
    checked = 0
    for case in golden["sequential"]:
        if not case["drop_last"] or not all(isinstance(batches, list) for batches in case["ranks"]):
            continue  # a short last batch, or a start beyond the end: our steps are always whole
        micro, ranks = case["micro_batch"], case["dp"]
        for rank, batches in enumerate(case["ranks"]):
            steps = [
                read(case["consumed"] + k * micro * ranks, micro * ranks, micro, rank, ranks)
                for k in range(len(batches))
            ]
            assert [part for step in steps for part in step] == batches
            checked += len(batches)
    assert checked > 20


def test_entropy_and_bytes_by_counting() -> None:
    random = np.random.default_rng(0)
    samples = [random.integers(0, 9, 12) ** 2 for _ in range(6)]
    lengths = np.arange(70) % 5  # tokens from 70 on are padding rows, which stand for nothing
    counts = Counter(int(token) for sample in samples[:5] for token in sample[1:])
    total = sum(counts.values())
    expected = -sum(n / total * math.log(n / total) for n in counts.values())
    counted = count_tokens(ValidationSet("x", samples, 5), lengths)  # type: ignore[arg-type]
    assert counted.entropy == pytest.approx(expected)
    size = sum(n * (token % 5) for token, n in counts.items() if token < 70)
    assert counted.bits_per_byte(2.0) == pytest.approx(2.0 * total / math.log(2) / size)
    assert math.isnan(count_tokens(ValidationSet("x", samples, 5), None).bits_per_byte(2.0))  # type: ignore[arg-type]


def plain(ranges: list[tuple[int, int]], position: int, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        if not any(first <= position < end for first, end in ranges):
            found.append(position)
        position += 1
    return found


RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5)


@given(RANGES, st.integers(0, 70), st.integers(1, 20))
def test_skipping_by_counting(ranges: list[tuple[int, int]], position: int, count: int) -> None:
    skips, expected = Skips.of(ranges), plain(ranges, position, count)
    assert skips.numbers(position, count).tolist() == expected
    assert skips.end_of(position, count) == expected[-1] + 1
    passed = {one for first, end in skips.below(position) for one in range(first, end)}
    assert passed == {one for first, end in ranges for one in range(first, end) if one < position}
    steps, place = 0, 0
    while plain(ranges, place, count)[-1] < 100:
        steps, place = steps + 1, plain(ranges, place, count)[-1] + 1
    assert count_steps(BatchSize(count, count), skips, 100) == steps


@given(RANGES, RANGES, st.integers(0, 70))
def test_what_lies_ahead_may_be_skipped_at_any_time(
    before: list[tuple[int, int]], now: list[tuple[int, int]], reached: int
) -> None:
    same = all(
        any(first <= one < end for first, end in before) == any(first <= one < end for first, end in now)
        for one in range(reached)
    )
    assert continues(before, now, reached) == same
