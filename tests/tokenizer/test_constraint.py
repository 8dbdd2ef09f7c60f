"""The two sizes of a vocabulary: BLOOM's figures, Megatron's own results, and errors that say what would do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.errors import TokenizerError
from tokenizer.constraint import check_merges_found, fit_sizes


def test_bloom() -> None:
    sizes = fit_sizes(250_680, divisible_by=128, tensor_parallel=4)
    assert (sizes.padded_vocab_size, sizes.spare, sizes.merges) == (250_880, 200, 250_420)
    assert fit_sizes(250_680, padded_vocab_size=250_880) == sizes
    assert sizes.padded_vocab_size == 490 * 512


def test_sample() -> None:
    sizes = fit_sizes(7_992, divisible_by=128, tensor_parallel=4)
    assert (sizes.padded_vocab_size, sizes.spare) == (8_192, 200)


def test_same_as_megatron(shared: Path) -> None:
    cases = json.loads((shared / "golden/megatron/07b_vocab_padding.json").read_text())["cases"]
    for case in cases:
        asked = {
            "divisible_by": case["divisible_by"],
            "tensor_parallel": case["tp"],
            "padded_vocab_size": case["pad_vocab_size_to"],
        }
        if isinstance(case["result"], int):
            assert fit_sizes(case["vocab"], **asked).padded_vocab_size == case["result"]
        else:
            with pytest.raises(TokenizerError):
                fit_sizes(case["vocab"], **asked)
    assert len(cases) >= 9


@pytest.mark.parametrize(
    ("vocab_size", "padded", "message"),
    [
        (250_680, 250_680, "250,680 is not a multiple of 128 x 4 = 512 .* Set it to 250,880; "),
        (250_680, 250_700, "Set it to 250,880; 250,680 tokens need at least 250,880"),
        (250_000, 250_700, "Set it to 250,368 or 250,880; 250,000 tokens need at least 250,368"),
        (250_680, 250_679, "smaller than vocab_size 250,680.* Set padded_vocab_size to 250,880"),
        (250_680, 250_368, "or vocab_size to at most 250,368"),
        (259, None, "at least 260: 4 special tokens and 256 bytes"),
        (-1, None, "at least 260"),
        (300, 100, "Set padded_vocab_size to 512 .*tensor_parallel\\)\\)\\.$"),
    ],
)
def test_impossible_sizes_name_possible_ones(vocab_size: int, padded: int | None, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        fit_sizes(vocab_size, padded_vocab_size=padded)


@pytest.mark.parametrize(("divisible_by", "tensor_parallel"), [(0, 1), (128, 0), (-128, 4)])
def test_factors_are_positive(divisible_by: int, tensor_parallel: int) -> None:
    with pytest.raises(TokenizerError, match="at least 1"):
        fit_sizes(1000, divisible_by=divisible_by, tensor_parallel=tensor_parallel)


@settings(deadline=None)
@given(st.integers(260, 10**6), st.integers(1, 512), st.integers(1, 64))
def test_padding_is_the_smallest_multiple(vocab_size: int, divisible_by: int, tensor_parallel: int) -> None:
    sizes = fit_sizes(vocab_size, divisible_by=divisible_by, tensor_parallel=tensor_parallel)
    step = divisible_by * tensor_parallel
    assert sizes.padded_vocab_size % step == 0 and 0 <= sizes.spare < step
    again = fit_sizes(
        vocab_size, divisible_by=divisible_by, tensor_parallel=tensor_parallel,
        padded_vocab_size=sizes.padded_vocab_size,
    )  # fmt: skip
    assert again == sizes


def test_too_few_merges() -> None:
    sizes = fit_sizes(1000, tensor_parallel=1)
    check_merges_found(740, sizes, 0)
    with pytest.raises(TokenizerError, match=r"needs 740 merges, but .* only 500 distinct ones\. .*at most 760"):
        check_merges_found(500, sizes, 0)
    with pytest.raises(TokenizerError, match="only 500 distinct ones that occur at least 3 times"):
        check_merges_found(500, sizes, 3)
