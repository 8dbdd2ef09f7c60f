"""The sample order: golden numbers, published vectors, and what must hold for any data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.order import Order, Variant, build_order, epochs_needed, locate_samples, samples_in
from roots_pipeline.core.errors import MixtureError
from tests.mixtures.golden import load, same
from tests.mixtures.plain import sample_starts

VARIANTS: tuple[Variant, Variant] = ("bigscience", "megatron_core")


def agrees(order: Order, wanted: dict[str, Any]) -> bool:
    return (
        order.epochs == wanted["epochs"]
        and order.separate_last_epoch == wanted["separate_last_epoch"]
        and same(wanted["doc_idx"], order.document_index)
        and same(wanted["sample_idx"], order.sample_index)
        and same(wanted["shuffle_idx"], order.shuffle_index)
    )


def test_published_vectors() -> None:
    first = locate_samples(np.array([5, 3, 7, 4]), np.array([2, 0, 3, 1]), 4, 4, 19)
    assert first.tolist() == [[0, 0], [0, 4], [1, 1], [2, 0], [3, 0]]
    second = locate_samples(np.array([5, 4, 5]), np.array([0, 1, 2]), 4, 3, 14)
    assert second.tolist() == [[0, 0], [0, 4], [1, 3], [2, 3]]


def test_golden_indices(shared: Path) -> None:
    golden = load(shared, "01_gpt_index")
    crashes = 0
    for case in golden["cases"]:
        lengths = np.array(golden["lengths"][case["lengths"]], np.int32)
        documents = np.arange(*case["documents"])
        for variant in VARIANTS:
            wanted = case[variant]
            if wanted == "identical":
                wanted = case["bigscience"]
            if "error" in wanted:  # the original stops with an assertion; we go on as megatron-core does
                crashes += 1
                wanted = case["megatron_core"]
            order = build_order(lengths, documents, case["seq_length"], case["num_samples"], case["seed"], variant)
            assert agrees(order, wanted), (variant, case["id"])
    assert crashes == 58 and len(golden["cases"]) == 413


def test_golden_options_of_megatron_core(shared: Path) -> None:
    golden = load(shared, "01b_gpt_index_core_variants")
    for case in golden["cases"]:
        lengths = np.array(golden["lengths"][case["lengths"]], np.int32)
        order = build_order(
            lengths,
            np.arange(len(lengths)),
            case["seq_length"],
            case["num_samples"],
            case["seed"],
            "megatron_core",
            extra_token=case["add_extra_token_to_sequence"],
            keep_partial=case["split"] == "valid" and not case["drop_last_partial_validation_sequence"],
        )
        if "error" in case["megatron_core"]:  # core fails if the last document is empty; the last sample ends before it
            position, offset = order.sample_index[-1]
            assert offset == lengths[order.document_index[position]] - 1
            assert not lengths[order.document_index[position + 1 :]].any()
        else:
            assert agrees(order, case["megatron_core"]), case


def test_golden_sample_index_of_given_documents(shared: Path) -> None:
    for case in load(shared, "01c_sample_idx_explicit")["cases"]:
        lengths, documents = np.array(case["lengths"], np.int32), np.array(case["doc_idx"], np.int32)
        tokens, length = case["epochs"] * case["tokens_per_epoch"], case["seq_length"]
        for name, extra, partial in (
            ("sample_idx", True, False),
            ("core_keep_partial", True, True),
            ("core_no_extra_token", False, False),
            ("core_keep_partial_no_extra", False, True),
        ):
            samples = -(-(tokens - extra) // length) if partial else (tokens - extra) // length
            found = locate_samples(lengths, documents, length, samples, tokens, extra_token=extra)
            if case[name] != "AssertionError":
                assert found.tolist() == case[name], (name, case)


def test_golden_random_state(shared: Path) -> None:
    for case in load(shared, "01d_randomstate_shuffle")["cases"]:
        raw = np.random.RandomState(case["seed"])
        assert raw.randint(0, 2**32, 8, dtype=np.uint32).tolist() == case["first_raw_uint32"]
        random = np.random.RandomState(case["seed"])
        for wanted in case["consecutive_shuffles_of_arange_same_rng"]:
            values = np.arange(len(wanted))
            random.shuffle(values)
            assert values.tolist() == wanted
        assert random.randint(0, 2**32, 3, dtype=np.uint32).tolist() == case["next_raw_uint32_after_them"]
        random = np.random.RandomState(case["seed"])
        for big in case["consecutive_large_shuffles_same_rng"]:
            values = np.arange(big["n"], dtype=big["dtype"])
            random.shuffle(values)
            assert same(big, values)


def test_bloom_epochs() -> None:
    """BLOOM's first epoch ended with iteration 85,376; its second, of which 39% were wanted, was shuffled apart."""
    first_epoch = 9_841_584 + (85_376 - 12_695) * 2048  # samples after the batch ramp, then full batches
    assert first_epoch == 158_692_272
    tokens = first_epoch * 2048 + 1
    assert round(tokens / 1e9, 1) == 325.0
    assert epochs_needed(tokens, 2048, 220_000_000) == 2
    assert samples_in(1, tokens, 2048) == first_epoch
    # The same shape a thousand times smaller: 158,692 samples an epoch in documents of about 640 tokens.
    lengths = np.random.RandomState(0).randint(1, 1279, 158_692 * 16 // 640).astype(np.int32)
    per_epoch = samples_in(1, int(lengths.sum()), 16)
    order = build_order(lengths, np.arange(len(lengths)), 16, round(per_epoch * 220 / 158.692272), 42, "bigscience")
    assert (order.epochs, order.separate_last_epoch) == (2, True)


lengths_of_documents = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 40), st.just(600)), min_size=1, max_size=25)


@settings(max_examples=150, deadline=None)
@given(
    lengths_of_documents, st.integers(1, 33), st.integers(0, 60), st.integers(0, 2**32 - 1), st.sampled_from(VARIANTS)
)
def test_any_data(lengths: list[int], length: int, samples: int, seed: int, variant: Variant) -> None:
    array, documents = np.array(lengths, np.int32), np.arange(len(lengths))
    tokens = sum(lengths)
    if tokens == 0:
        with pytest.raises(MixtureError, match="not one token"):
            build_order(array, documents, length, samples, seed, variant)
        return
    order = build_order(array, documents, length, samples, seed, variant)
    assert order.samples >= samples
    assert order.epochs == 1 or samples_in(order.epochs - 1, tokens, length) < samples
    # Every document once per epoch.
    assert sorted(order.document_index.tolist()) == sorted([*range(len(lengths))] * order.epochs)
    if order.separate_last_epoch:
        last = order.document_index[-len(lengths) :]
        assert sorted(last.tolist()) == [*range(len(lengths))]
    # Samples lie where the plain algorithm puts them; nothing is read beyond the end.
    plain = sample_starts(lengths, order.document_index.tolist(), length, order.samples)
    assert [tuple(row) for row in order.sample_index.tolist()] == plain
    # Every sample once.
    assert sorted(order.shuffle_index.tolist()) == [*range(order.samples)]


def test_no_tokens() -> None:
    with pytest.raises(MixtureError, match="not one token"):
        build_order(np.zeros(3, np.int32), np.arange(3), 8, 1, 0, "bigscience")
    with pytest.raises(MixtureError, match="cannot have 0 tokens"):
        build_order(np.ones(3, np.int32), np.arange(3), 0, 1, 0, "bigscience")


def test_more_tokens_than_int32_holds() -> None:
    """3,000 documents of the largest length the format allows: 6.4e12 tokens."""
    lengths = np.full(3000, 2**31 - 1, np.int32)
    tokens = int(lengths.sum(dtype=np.int64))
    length = 2**28
    samples = samples_in(1, tokens, length)
    index = locate_samples(lengths, np.arange(3000), length, samples, tokens)
    assert len(index) == samples + 1
    for sample in (1, samples // 2, samples):
        position, offset = divmod(sample * length, 2**31 - 1)
        assert index[sample].tolist() == [position, offset]
    assert epochs_needed(tokens, 2048, 10**13) == -(-(10**13 * 2048 + 1) // tokens)


def test_wide_indices_hold_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths, documents = np.array([5, 0, 9, 3] * 5, np.int32), np.arange(20)
    narrow = build_order(lengths, documents, 4, 60, 7, "bigscience")
    monkeypatch.setattr("mixtures.order.INT32_END", 10)  # as if a document more did not fit
    wide = build_order(lengths, documents, 4, 60, 7, "bigscience")
    for name in ("document_index", "sample_index"):
        assert getattr(narrow, name).dtype == np.int32 and getattr(wide, name).dtype == np.int64
        assert np.array_equal(getattr(narrow, name), getattr(wide, name))
