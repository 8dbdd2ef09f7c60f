"""Huge and monotonous documents: all of them measured, in bounded time and memory."""

from __future__ import annotations

import pytest

from tests.text.twins import CHARACTERS, expected, measure


def test_one_line_of_one_repeated_character() -> None:
    size = 100_000_000
    (found,) = measure(["x" * size])
    assert found["word_count"] == 1
    assert found["mean_word_length"] == size


def test_one_line_of_one_repeated_word() -> None:
    (found,) = measure(["ab " * 3_000_000])
    assert found["word_count"] == 3_000_000
    assert found["duplicate_10_gram_character_fraction"] == pytest.approx(1, abs=2e-6)


def test_a_million_lines() -> None:
    same, different = measure(["spam\n" * 1_000_000, "\n".join(f"line{k}" for k in range(1_000_000))])
    assert same["duplicate_line_fraction"] == pytest.approx(1, abs=2e-6)
    assert same["duplicate_paragraph_fraction"] == 0
    assert different["duplicate_line_fraction"] == 0
    assert different["duplicate_5_gram_character_fraction"] == 0


def test_a_giant_of_an_unspaced_script_and_its_small_neighbours() -> None:
    small = "我是学生。" * 7
    first, giant, last = measure([small, "中" * 2_000_000, small], CHARACTERS)
    assert giant["word_count"] == 2_000_000
    assert first == last == pytest.approx(expected(small, CHARACTERS))


def test_many_distinct_words_in_one_document() -> None:
    (found,) = measure([" ".join(f"{k:x}" for k in range(600_000)) * 2])
    assert found["duplicate_10_gram_character_fraction"] == pytest.approx(0.5, abs=1e-4)
