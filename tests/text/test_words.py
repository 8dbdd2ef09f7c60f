"""Words, their hashes and lengths; UTF-8 that is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text.characters import character_classes
from roots_pipeline.text.words import CHARACTERS, SPACED, hash_words
from tests.text.twins import buffers, measure, words_of

CLASSES = character_classes()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5), st.sampled_from([SPACED, CHARACTERS]))
def test_words_are_those_of_the_twin(texts: list[str], setting: int) -> None:
    hashes, lengths, first = hash_words(*buffers(texts), CLASSES, setting)
    wanted = [words_of(text, setting) for text in texts]
    assert first.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    flat = [word for words in wanted for word in words]
    assert lengths.tolist() == [len(word) for word in flat]
    assert len(set(hashes.tolist())) == len(set(flat))
    assert len(set(zip(hashes.tolist(), flat, strict=True))) == len(set(flat))


def test_a_word_has_one_hash_wherever_it_stands() -> None:
    """At the end of the buffer bytes are read one by one, elsewhere eight at a time."""
    for word in ("a", "seven77", "eight888", "nine99999", "sixteen_16161616", "é", "naïveté", "a\x00b", "x" * 100):
        hashes, _, _ = hash_words(*buffers([word, f"{word} and {word}", f" {word}\n", word]), CLASSES)
        same = [hashes[0], hashes[1], hashes[3], hashes[4], hashes[5]]
        assert len(set(same)) == 1, word
        assert hashes[2] != hashes[0]


def test_setting_for_scripts_without_spaces() -> None:
    assert words_of("我是ABC学生，2024年 ok", CHARACTERS) == ["我", "是", "ABC", "学", "生", "，2024", "年", "ok"]
    _, lengths, _ = hash_words(*buffers(["我是ABC学生，2024年 ok"]), CLASSES, CHARACTERS)
    assert lengths.tolist() == [1, 1, 3, 1, 1, 5, 1, 2]


def test_combining_marks_stay_with_their_letter() -> None:
    thai = "กำลังไป"
    _, lengths, _ = hash_words(*buffers([thai]), CLASSES, CHARACTERS)
    assert lengths.sum() == len(thai)
    assert lengths.max() > 1


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64))
def test_bytes_that_are_not_utf8_are_survived(raw: bytes) -> None:
    data = np.frombuffer(raw + b"!" * 8, np.uint8)
    offsets = np.array([0, len(raw)], np.int64)
    for setting in (SPACED, CHARACTERS):
        hashes, _, first = hash_words(data, offsets, CLASSES, setting)
        assert first[-1] == len(hashes) <= len(raw) // 2 + 1


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63])
def test_a_text_that_fills_its_buffer(size: int) -> None:
    text = "x" * size
    data, offsets = np.frombuffer(text.encode(), np.uint8), np.array([0, size], np.int64)
    assert hash_words(data, offsets, CLASSES)[1].tolist() == [size]
    assert measure([text])[0]["mean_word_length"] == size
