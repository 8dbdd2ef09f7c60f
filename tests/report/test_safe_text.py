"""Text of strangers: escaped, cut, hidden characters visible, scripts that need joiners left alone."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from roots_pipeline.report.safe_text import decode, marked, plain

TURNING = ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI", "FSI", "PDF", "PDI")
ANY = st.text(st.characters(), max_size=60)  # surrogates included


def test_markup_is_escaped() -> None:
    assert "<script>" not in marked("<script>alert(1)</script>")
    assert marked('a"b') == "a&#34;b"


def test_hidden_characters_become_visible() -> None:
    text = "a\u202eb\x1b[31mc\x00\ufeff\ud800\u2028"
    assert plain(text) == "a⟨U+202E⟩b⟨␛⟩[31mc⟨␀⟩⟨U+FEFF⟩⟨U+D800⟩⟨U+2028⟩"
    assert marked("\u202e") == '<span class="hidden">U+202E</span>'


def test_joiners_and_enclosing_signs_stay() -> None:
    for text in ("क्‍ष", "می‌خواهم", "\u0600٤", "é", "🙂"):
        assert plain(text) == text == marked(text)


def test_long_texts_and_lines_are_cut() -> None:
    assert len(plain("x" * 10_000_000)) == 201
    assert marked("x" * 10_000_000, line_length=50) == "x" * 50 + "…"
    assert marked("a\n" * 100, lines=3) == "a\na\na\n…"


def test_stacks_of_marks_are_cut() -> None:
    assert plain("a" + "\u0301" * 150 + "b") == "a" + "\u0301" * 8 + "…b" == marked("a" + "\u0301" * 150 + "b")


def test_line_ends_of_windows_are_no_noise() -> None:
    assert marked("a\r\nb\rc") == 'a\nb<span class="hidden">␍</span>c'


def test_broken_bytes_do_not_raise() -> None:
    assert decode(b"a\xed\xa0\x80b\xff") == "a" + "\ufffd" * 3 + "b\ufffd"


@given(ANY)
def test_nothing_hidden_is_left(text: str) -> None:
    for shown in (plain(text), str(marked(text))):
        shown.encode()  # no surrogate
        for character in shown:
            category = unicodedata.category(character)
            assert category not in ("Cs", "Zl", "Zp")
            assert category != "Cc" or character in "\n\t"
            assert unicodedata.bidirectional(character) not in TURNING
    assert "\n" not in plain(text)


@given(ANY)
def test_marked_without_boxes_is_the_escaped_text(text: str) -> None:
    if plain(text, 100) == text:
        assert marked(text).unescape() == text
