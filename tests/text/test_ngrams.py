"""N-grams against a plain twin: the same n-grams, equal hashes for equal n-grams and for no others."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text import ngrams as module
from roots_pipeline.text.ngrams import CHARACTERS, WORDS, ngram_hashes, ngrams_of
from tests.text.twins import buffers, is_unspaced

TEXTS = st.lists(
    st.one_of(
        st.text(alphabet="aB1 .\n-é日本กำ́İ", max_size=60),
        st.text(max_size=40),
        st.lists(st.sampled_from(["one", "Two", "three,", "--", "日本", "naïve", "averyveryverylongword"]), max_size=12)
        .map(" ".join),
    ),
    max_size=6,
)


def normal(text: str, lower_case: bool) -> str:
    """The text without punctuation and symbols; with `lower_case`, letters that have one lower-case letter have it."""
    text = "".join(c for c in text if unicodedata.category(c)[0] not in "PS" or c.isspace())
    return "".join(c.lower() if lower_case and len(c.lower()) == 1 else c for c in text)


def units_of(text: str, unit: int, lower_case: bool) -> list[str]:
    """The words or characters of a text."""
    text = normal(text, lower_case)
    if unit == CHARACTERS:
        return list(" ".join(text.split()))
    words: list[str] = []
    for run in text.split():
        alone, new = False, True
        for c in run:
            if new or is_unspaced(c) or (alone and unicodedata.category(c)[0] != "M"):
                words.append(c)
                alone, new = is_unspaced(c), False
            else:
                words[-1] += c
    return words


def ngrams(text: str, unit: int, size: int, lower_case: bool, short_whole: bool) -> list[tuple[str, ...]]:
    units = units_of(text, unit, lower_case)
    if 0 < len(units) < size:
        return [tuple(units)] if short_whole else []
    return [tuple(units[k : k + size]) for k in range(len(units) - size + 1)]


@pytest.mark.parametrize("unit", [WORDS, CHARACTERS])
@given(TEXTS, st.integers(1, 5), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_same_ngrams_as_the_twin(unit: int, texts: list[str], size: int, lower_case: bool, short: bool) -> None:
    texts = [text for text in texts if text.isascii() or text.encode("utf-8", "ignore").decode() == text]
    hashes, bounds = ngram_hashes(*buffers(texts), ngrams_of(unit, size, lower_case), short)
    meaning: dict[int, tuple[str, ...]] = {}
    for number, text in enumerate(texts):
        expected = ngrams(text, unit, size, lower_case, short)
        found = hashes[bounds[number] : bounds[number + 1]].tolist()
        assert len(found) == len(expected)
        for value, ngram in zip(found, expected, strict=True):
            assert meaning.setdefault(value, ngram) == ngram
    assert len(set(meaning.values())) == len(meaning)


@pytest.mark.parametrize("unit", [WORDS, CHARACTERS])
@pytest.mark.parametrize("size", [1, 2, 13, 500])
def test_blocks_do_not_show(unit: int, size: int) -> None:
    dice = np.random.default_rng(size)
    words = ["a", "bb", "日", "ccc,", "dddddddd", "é"]
    long = " ".join(words[k] for k in dice.integers(0, len(words), 3 * module.BLOCK + 17))
    hashes, bounds = ngram_hashes(*buffers([long, "a", long]), ngrams_of(unit, size), True)
    expected = ngrams(long, unit, size, False, True)
    first = hashes[bounds[0] : bounds[1]].tolist()
    assert first == hashes[bounds[2] : bounds[3]].tolist()
    assert len(first) == len(expected)
    assert len(set(zip(first, expected, strict=True))) == len(set(first)) == len(set(expected))


def test_white_space_and_punctuation_do_not_count() -> None:
    texts = ["The cat, sat -- on the mat.", "The cat sat\n\n on\u3000the (mat)", "The cat sat on the matt"]
    hashes, bounds = ngram_hashes(*buffers(texts), ngrams_of(WORDS, 3), True)
    one, two, three = (hashes[a:b].tolist() for a, b in pairwise(bounds))
    assert one == two and one[:-1] == three[:-1] and one[-1] != three[-1]


def test_text_without_words_has_no_ngram() -> None:
    _, bounds = ngram_hashes(*buffers(["", " \n", "... --- !!!", "\u3000。"]), ngrams_of(WORDS, 13), True)
    assert bounds.tolist() == [0] * 5
