"""The splitter against the specification's vectors, every code point, a plain twin, and any bytes at all."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizer import peer, plain
from tokenizer.pretokenize import PATTERN, SEPARATORS, split_pieces

VECTORS = {
    "foo(bar), baz": ["foo", "(", "bar", "),", " baz"],
    "a   b\n\n c": ["a", "  ", " b", "\n\n", " c"],
    "x=1234|5.6": ["x=1234", "|", "5", ".", "6"],
    "你好，世界。Hello…": ["你好", "，", "世界", "。", "Hello", "…"],
    "": [],
    " ": [" "],
    "a ": ["a", " "],
    "  a": [" ", " a"],
    "1,234.5": ["1", ",", "234", ".", "5"],
    "a\x00b": ["a\x00b"],
    "</s>": ["</s>"],
    "    return x\n": ["   ", " return", " x", "\n"],
}
near_separators = st.text(st.sampled_from([*map(chr, SEPARATORS), *" ab\x00éߺ࠭ठ你🙂", " ", "\u200b", "\ufeff"]))


def hugging_face(text: str) -> list[str]:
    return [piece for piece, _ in peer.split_only().pre_tokenize_str(text)]


def ours(text: str) -> list[str]:
    return [piece.decode() for piece in split_pieces(text.encode())]


def test_the_pattern_is_blooms() -> None:
    assert PATTERN == peer.PATTERN
    assert len(SEPARATORS) == len(set(SEPARATORS)) == 39
    assert set(map(chr, SEPARATORS)) == plain.SEPARATORS


@pytest.mark.parametrize("text", VECTORS)
def test_vectors_of_the_specification(text: str) -> None:
    assert ours(text) == VECTORS[text] == plain.split(text)
    if text:
        assert hugging_face(text) == VECTORS[text]


def test_every_code_point_as_hugging_face_reads_it() -> None:
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    text = "".join(f"{chr(point)}x" for point in points)
    pieces = ours(text)
    assert pieces == hugging_face(text)
    assert len(pieces) == 2 * 39  # each separator, and what lies before or behind it


@settings(deadline=None)
@given(near_separators | st.text())
def test_same_as_the_plain_twin(text: str) -> None:
    assert ours(text) == plain.split(text)


def test_texts_of_many_blocks() -> None:
    """Words and gaps that cross the 64 bytes that are looked at together, and bytes that are no UTF-8."""
    chance = random.Random(5)
    alphabet = [*map(chr, SEPARATORS), *"ab  é你न\x00", "word", " word", "\udcff", "\udce2\udc80"]
    for number in range(1500):
        chosen = chance.sample(alphabet, k=chance.randint(1, len(alphabet)))
        text = "".join(chance.choices(chosen, k=chance.choice([3, 60, 130, 2500])))
        data = text.encode(errors="surrogateescape")
        text = data.decode(errors="surrogateescape")  # escaped bytes may have become a character
        expected = [piece.encode(errors="surrogateescape") for piece in plain.split(text)]
        assert split_pieces(data) == expected, number


def test_same_as_hugging_face_on_runs_of_separators() -> None:
    characters = [" ", "  ", "a", ".", "\n", "\u3000", "।", "(", "é"]
    for first in characters:
        for second in characters:
            for third in characters:
                text = first + second + third + first
                assert ours(text) == hugging_face(text), repr(text)


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_cut_into_the_same_bytes(data: bytes) -> None:
    pieces = split_pieces(data)
    assert b"".join(pieces) == data and all(pieces)


@settings(deadline=None)
@given(st.binary())
def test_a_piece_is_one_piece(data: bytes) -> None:
    """So a table of pieces stands for the text: cutting again changes nothing."""
    for piece in split_pieces(data):
        assert split_pieces(piece) == [piece]


@pytest.mark.parametrize("bad", [b"\xe0\x80\xa0", b"\xe2\x80", b"\xc2", b"\xe0\xa5", b"\xef\xbc\xff", b"\xe2a\x80"])
def test_broken_utf8_is_no_separator(bad: bytes) -> None:
    assert split_pieces(b"a" + bad) == [b"a" + bad]
