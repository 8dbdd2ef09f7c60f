"""All measures against their plain twin, on random Unicode and on text that repeats itself."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.twins import CHARACTERS, SPACED, expected, measure

# Few different pieces, so that words, n-grams, lines and paragraphs repeat.
PLAIN = "a b the The THE and é # ... … x. 12 • - 中 文 中文abc 。 กำ ကို नमस्ते a\u0301 wordwordwordword"
ODD = "\x00|\u0301|\x85|\u2028|\u3000| |\t|\n|\n\n|\r\n| \n \n|the cat sat on the mat|1 2 3 4 5 6 7 8 9 10 11"
PIECES = [*PLAIN.split(), *ODD.split("|")]
repetitive = st.lists(st.sampled_from(PIECES), max_size=120).map(" ".join) | st.lists(
    st.sampled_from(PIECES), max_size=120
).map("".join)
anything = st.text(max_size=200)


def assert_equal(text: str, setting: int, first_too: bool) -> None:
    (found,) = measure([text], setting, first_too)
    wanted = expected(text, setting, first_too)
    assert found == pytest.approx(wanted, abs=1e-12), text


@settings(max_examples=400, deadline=None)
@given(repetitive | anything, st.sampled_from([SPACED, CHARACTERS]), st.booleans())
def test_kernels_agree_with_their_twin(text: str, setting: int, first_too: bool) -> None:
    assert_equal(text, setting, first_too)


@pytest.mark.parametrize("language", ["en", "hi", "zh"])
def test_documents_of_the_sample_corpus(sample: Path, language: str) -> None:
    lines = (sample / "web" / f"{language}.jsonl").read_text("utf-8").split("\n")
    for text in (json.loads(line)["text"] for line in lines if line):
        assert_equal(text, CHARACTERS if language == "zh" else SPACED, False)


@settings(max_examples=60, deadline=None)
@given(st.lists(repetitive | anything, max_size=6), st.sampled_from([SPACED, CHARACTERS]))
def test_neighbours_in_a_batch_do_not_matter(texts: list[str], setting: int) -> None:
    together = measure(texts, setting)
    assert together == [measure([text], setting)[0] for text in texts]


@pytest.mark.parametrize("seed", range(6))
def test_long_random_text_in_which_tables_grow(seed: int) -> None:
    random.seed(seed)
    vocabulary = [f"w{k}" for k in range(10 ** (seed % 3 + 1) * 5)]
    text = "".join(random.choice(vocabulary) + random.choice("  \n") for _ in range(4000))
    assert_equal(text, SPACED, seed % 2 == 0)


def test_known_values() -> None:
    (found,) = measure(["The cat... sat on # 12 mats\n- the end…\n\n- the end…"])
    assert found["word_count"] == 13
    assert found["hash_to_word_ratio"] == 1 / 13
    assert found["ellipsis_to_word_ratio"] == 3 / 13
    assert found["bullet_line_fraction"] == found["ellipsis_line_fraction"] == 2 / 3
    assert found["alphabetic_word_fraction"] == 9 / 13
    assert found["stop_word_count"] == 1
    assert found["duplicate_line_fraction"] == 1 / 3
    assert found["duplicate_paragraph_fraction"] == 0


@pytest.mark.parametrize("first_too", [False, True])
def test_one_word_repeated(first_too: bool) -> None:
    """Overlapping n-grams count each character once, so nothing exceeds 1."""
    (found,) = measure(["ab " * 50], first_copy_too=first_too)
    assert found["top_2_gram_character_fraction"] == 1
    assert found["duplicate_5_gram_character_fraction"] == (1 if first_too else 49 / 50)


def test_a_gram_that_occurs_once_is_no_top_gram() -> None:
    (found,) = measure(["one two three four five"])
    assert found["top_2_gram_character_fraction"] == 0


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\x00", "a", "\ufeff", "\U0010ffff", "中", "…", "." * 50])
def test_texts_with_next_to_nothing_in_them(text: str) -> None:
    for setting in (SPACED, CHARACTERS):
        assert_equal(text, setting, False)
        assert all(math.isfinite(value) for value in measure([text], setting)[0].values())
