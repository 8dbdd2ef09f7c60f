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

from train.data import micro_batches, unigram_entropy


class Numbered:
    """Sample i holds the number i, plus its position."""

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        return np.arange(5, dtype=np.int64) + 10 * index


def read(consumed: int, batch: int, micro: int, rank: int, ranks: int) -> list[list[int]]:
    return [
        (inputs[:, 0] // 10).tolist() for inputs, _ in micro_batches(Numbered(), consumed, batch, micro, rank, ranks)
    ]


def test_labels_are_the_inputs_shifted_by_one() -> None:
    inputs, labels = next(micro_batches(Numbered(), 3, 2, 2, 0, 1))
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


def test_unigram_entropy_by_counting() -> None:
    random = np.random.default_rng(0)
    samples = [random.integers(0, 9, 12) ** 2 for _ in range(6)]
    counts = Counter(int(token) for sample in samples[:5] for token in sample[1:])
    total = sum(counts.values())
    expected = -sum(n / total * math.log(n / total) for n in counts.values())
    assert unigram_entropy(samples, 5) == pytest.approx(expected)  # type: ignore[arg-type]
