"""Folding and words: known cases, and the kernel against its twin on random Unicode."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.text.contamination_characters import BORDER, IGNORED, SEPARATOR, fold, folding
from roots_pipeline.text.contamination_tables import window_hashes
from roots_pipeline.text.contamination_words import Words, read_words
from tests.decontamination.twins import is_border, is_ignored, is_word_character, words_of

MARKUP = ["<b>", "</p>", "<br/>", "<a b='c d'>", "&amp;", "&#39;", "<1>", "<b", "</", "<x/ y>", "<b <i>", "& a;", "&#;",
          "<abcdefghijklmnopqrst>", "&abcdefghijklmnopqrst;"]
# Many of what matters: case, accents, scripts without spaces, marks, hidden characters, digits, long words.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("aAbzZ019 \n.,'’-–_!\u00ad\u200b\u0301éÉßﬁİıσςΣ٣३กำ่ခြး你好々〇ガが゙한글각①²½ـًَকড়়𝔄🙂"),
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("<>/&;#"),
    ),
    max_size=60,
)


def read(*texts: str) -> Words:
    return read_words(*text_buffers(pa.array(texts, pa.large_string())), folding())


def same(first: str, second: str) -> bool:
    return bool(np.array_equal(read(first).hashes, read(second).hashes))


@pytest.mark.parametrize(("first", "second"), [
    ("The village of Upper Dunmore has two bakeries.", "THE VILLAGE -- of\n upper dunmore; HAS two, BAKERIES"),
    ("Straße", "STRASSE"),
    ("ﬁne eﬀort", "FINE EFFORT"),
    ("café Ünal", "CAFE\u0301 u\u0308nal"),
    ("cafe", "café"),
    ("don't well-known", "don t well known"),
    ("Kafka\u00adesque\u200d", "kafkaesque"),
    ("λόγος ΛΌΓΟΣ", "ΛΟΓΟΣ λογος"),
    ("ＡＢＣ １２３", "abc 123"),
    ("٣٤ ३४", "34 34"),
    ("ISTANBUL İSTANBUL ısı", "istanbul istanbul ISI"),
    ("한국어", unicodedata.normalize("NFD", "한국어")),
    ("がっこう", unicodedata.normalize("NFD", "がっこう")),
    ("مُحَمَّدٌ كـــتاب", "محمد كتاب"),
    ("क़लम", "कलम"),
    ("你好，世界", "你 好 世 界"),
    ("iPhone手机", "IPHONE 手 机"),
    ("กำลังไป", "กำลัง ไป"),
    ("<p>Two <b>words</b>&nbsp;h&#101;re<br/>\n</p>", "two words h re"),
    ('one <a href="https://example.org/x">two</a> three', "one two three"),
    ("a < b and b > c", "a b and b c"),
    ("a<b c & d; e&f g", "a b c d e f g"),
])
def test_what_is_the_same(first: str, second: str) -> None:
    assert same(first, second)


@pytest.mark.parametrize(("first", "second"), [
    ("ab c", "a bc"), ("abc", "abcd"), ("a", "b"), ("12 3", "1 23"), ("कि", "की"), ("か", "が"), ("你好", "好你"),
    ("eight888", "eight8888"), ("x y", "xy"),
])
def test_what_is_different(first: str, second: str) -> None:
    assert not same(first, second)


def test_sizes_and_lengths() -> None:
    words = read("two words 你好 ก็ dé́jà")
    assert words.sizes.tolist() == [12, 12, 6, 6, 3, 12]
    assert words.lengths.tolist() == [3, 5, 3, 3, 1, 4]


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXTS | st.lists(st.sampled_from([*MARKUP, "word", " ", "é"])).map("".join), max_size=4))
def test_words_are_those_of_the_twin(texts: list[str]) -> None:
    words = read(*texts)
    names: dict[str, int] = {}
    for number, text in enumerate(texts):
        begin, end = words.first[number], words.first[number + 1]
        shift = sum(len(before.encode()) for before in texts[:number])
        expected = words_of(text)
        assert end - begin == len(expected)
        for k, word in zip(range(begin, end), expected, strict=True):
            assert (words.starts[k] - shift, words.stops[k] - shift) == (word.start, word.stop)
            assert words.sizes[k] == 12 * word.size
            assert words.letters[k] == word.letter
            assert words.lengths[k] == word.characters
            assert names.setdefault(word.text, words.hashes[k]) == words.hashes[k]
    assert len(set(names.values())) == len(names)


def test_every_character_is_classed_as_its_definition_says() -> None:
    table = folding().table
    planes = [*range(0, 0x3400, 1), *range(0x3400, 0x33480, 37), *range(0xE0000, 0xE0200)]
    for code in planes:
        character, kind = chr(code), int(table[code])
        assert bool(kind & IGNORED) == is_ignored(character), hex(code)
        assert (not kind & (IGNORED | SEPARATOR)) == is_word_character(character), hex(code)
        assert bool(kind & BORDER) == is_border(character), hex(code)


def test_folding_twice_changes_nothing() -> None:
    for code in range(0x3000):
        once = fold(chr(code))
        if once and is_word_character(chr(code)):
            assert "".join(map(fold, once)) == once, hex(code)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 6))
def test_equal_windows_have_equal_hashes(values: list[int], size: int) -> None:
    words = np.array([value * 0x123456789ABCDEF + 7 for value in values], np.uint64)
    hashes = window_hashes(words, size).tolist()
    windows = [tuple(values[at : at + size]) for at in range(len(values) - size + 1)]
    assert len(hashes) == len(windows)
    assert len(set(hashes)) == len(set(windows))
    assert len(set(zip(hashes, windows, strict=True))) == len(set(windows))
