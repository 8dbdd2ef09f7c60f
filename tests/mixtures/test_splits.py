"""Splits: golden numbers of both programs, and the hash split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.join import split_hashes
from mixtures.order import Variant
from mixtures.splits import check_boundaries, comma_boundaries, held_out, range_boundaries, sequences_of, sides_by_hash
from roots_pipeline.core.errors import MixtureError
from tests.mixtures.golden import load


def test_golden_ranges(shared: Path) -> None:
    for case in load(shared, "03_splits")["ranges"]:
        if isinstance(case["bigscience"], str):
            with pytest.raises(MixtureError):
                range_boundaries(case["range"], case["N"])
        else:
            assert list(range_boundaries(case["range"], case["N"])) == case["bigscience"], case


@pytest.mark.parametrize(("variant", "column"), [("bigscience", "bigscience"), ("megatron_core", "core")])
def test_golden_comma_strings(shared: Path, variant: Variant, column: str) -> None:
    for case in load(shared, "03_splits")["split_strings"]:
        wanted = case[column]
        if isinstance(wanted, str):
            with pytest.raises(MixtureError):
                comma_boundaries(case["split"], case["N"], variant)
            continue
        found = comma_boundaries(case["split"], case["N"], variant)
        if variant == "bigscience":
            bounds = [bound for bound in found if bound is not None]
            assert [bounds[0][0], *(end for _, end in bounds)] == wanted, case
        else:
            assert [None if bound is None else list(bound) for bound in found] == wanted, case


def test_published_nonsense_is_not_used() -> None:
    assert comma_boundaries("0,1,1", 3, "bigscience")[:2] == [(0, -1), (-1, 1)]
    with pytest.raises(MixtureError, match="runs from 0 to -1"):
        sequences_of({"method": "comma", "parts": "0,1,1"}, "train", "", 3, "bigscience")
    with pytest.raises(MixtureError, match="runs from 7 to 2"):
        check_boundaries(range_boundaries("0.7:0.2", 10), 10, "0.7:0.2")
    with pytest.raises(MixtureError, match=r"not a range.*such as 0:0\.95"):
        range_boundaries("0-1", 10)


def test_range_and_comma_sides() -> None:
    split = {"method": "range", "train": "0:0.95", "validation": "0.95:1"}
    assert sequences_of(split, "train", "", 100, "bigscience").tolist() == [*range(95)]
    assert sequences_of(split, "validation", "", 100, "bigscience").tolist() == [*range(95, 100)]
    comma = {"method": "comma", "parts": "969,30,1"}
    assert len(sequences_of(comma, "validation", "", 1000, "megatron_core")) == 30
    assert len(sequences_of({"method": "comma", "parts": "1"}, "validation", "", 10, "megatron_core")) == 0
    assert sequences_of(comma, "test", "", 1000, "megatron_core").tolist() == [999]
    assert len(sequences_of(split, "test", "", 100, "bigscience")) == 0
    split |= {"validation": "0.95:0.98", "test": "0.98:1"}
    assert sequences_of(split, "test", "", 100, "bigscience").tolist() == [98, 99]
    with pytest.raises(MixtureError, match="no side 'dev'"):
        sequences_of(comma, "dev", "", 10, "bigscience")


@settings(deadline=None)
@given(st.lists(st.text(), unique=True, max_size=60), st.floats(0, 0.999))
def test_hash_split(ids: list[str], share: float) -> None:
    hashes = split_hashes(pa.array(ids, pa.string()))
    mask = held_out(hashes, share)
    if share == 0 or len(ids) < 2:
        assert not mask.any()  # every group trains on something
    else:
        assert 1 <= mask.sum() < len(ids)
    # A document keeps its side when others come or go, but for the one that is held out for lack of another.
    for keep in (slice(0, len(ids) // 2), slice(len(ids) // 2, None)):
        part = held_out(hashes[keep], share)
        assert np.sum(part != mask[keep]) <= 2


@settings(deadline=None)
@given(st.lists(st.text(), unique=True, max_size=60), st.floats(0, 0.5), st.floats(0, 0.499))
def test_three_sides(ids: list[str], share: float, test: float) -> None:
    hashes = split_hashes(pa.array(ids, pa.string()))
    sides = sides_by_hash(hashes, share, test)
    assert np.array_equal(sum(mask.astype(int) for mask in sides.values()), np.ones(len(ids)))
    assert np.array_equal(sides["validation"], held_out(hashes, share))  # a test does not move it
    assert sides["train"].any() == bool(ids)
    if test > 0 and np.sum(~sides["validation"]) > 1:
        assert sides["test"].any()
    if test == 0:
        assert not sides["test"].any()
    with pytest.raises(MixtureError, match="add up to less than 1"):
        sides_by_hash(hashes, 0.5, 0.5)


def test_shares_of_three_sides() -> None:
    sides = sides_by_hash(split_hashes(pa.array([str(number) for number in range(20_000)])), 0.05, 0.1)
    assert 900 < sides["validation"].sum() < 1100 and 1850 < sides["test"].sum() < 2150


def test_hash_split_is_a_fair_sample() -> None:
    ids = pa.array([f"https://example.org/{number}" for number in range(20_000)])
    mask = held_out(split_hashes(ids), 0.05)
    assert 900 < mask.sum() < 1100
    assert 400 < mask[:10_000].sum() < 600
    with pytest.raises(MixtureError, match="share of 1"):
        held_out(np.zeros(3, np.uint64), 1.0)


@pytest.mark.parametrize("text", ["nan:0.5", "-inf:1", "0:nan", "0:inf", "1e400:1", ":", "0:1:1", ""])
def test_ranges_that_are_no_numbers(text: str) -> None:
    with pytest.raises(MixtureError, match="range"):
        range_boundaries(text, 10)


@pytest.mark.parametrize("text", ["nan,1", "inf,1,1", "1e400", "-1,1", "", "a,b", "0,0"])
def test_parts_that_are_no_numbers(text: str) -> None:
    with pytest.raises(MixtureError, match=r"split|add up"):
        sequences_of({"method": "comma", "parts": text}, "train", "", 10, "bigscience")
