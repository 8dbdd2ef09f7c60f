"""The modification of documents: equal to plain Python on any text, and every switch."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.roots_modify import RootsModify
from tests.rules import roots_twin as twin
from tests.rules.corpora import batch_of

PIECES = [
    "http", "WWW", "www", ".com", ".Com", "href", "HREF", "//", "/", "(", ")", '"', "x" * 19, "x" * 26, "é" * 20,
    "!" * 30, "上", "ø", "ी", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\r", "\u2028", "\x85", "\xa0", "\u3000", "\x84",
    "\ufffc", "\u200b", "a", "1", "🙂", "中", "م",
]  # fmt: skip
SWITCHES = ("letters_are_special", "case_matters", "ends_are_ignored", "only_newlines", "trim_once")
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.text(max_size=80))


def modified(stage: RootsModify, *given: str, language: str = "en") -> list[str]:
    found: list[str] = stage(batch_of(*given, language=language)).column("text").to_pylist()
    return found


@pytest.mark.parametrize("language", ["en", "pt", "fr", "zh", "xx"])
@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(texts, min_size=1, max_size=4),
    switches=st.fixed_dictionaries({switch: st.booleans() for switch in SWITCHES}),
)
@example(texts=["\xa0 a \xa0", "\x84a\x84", ""], switches=dict.fromkeys(SWITCHES, True))
@example(texts=["\xa0 a \xa0", "\x84a\x84", "\u3000"], switches=dict.fromkeys(SWITCHES, False))
def test_any_text_as_in_plain_python(language: str, texts: list[str], switches: dict[str, bool]) -> None:
    stage = TypeAdapter(RootsModify).validate_python(switches)
    assert modified(stage, *texts, language=language) == [twin.modify(text, language, **switches) for text in texts]


def test_separators_are_joined_to_the_strongest() -> None:
    text = "a  b\t\tc \t d\n\n\ne www.x.com\tf\n www \n\tg"
    assert modified(RootsModify(), text) == ["a b\tc\td\ne\tf\ng"]


def test_case_matters_as_published_only() -> None:
    assert modified(RootsModify(case_matters=True), "see HREF and WWW") == ["see HREF and WWW"]
    assert modified(RootsModify(), "see HREF and WWW") == ["see and"]


def test_ends_are_ignored_as_published_only() -> None:
    assert modified(RootsModify(ends_are_ignored=True), 'a // "//" b//c') == ['a // "//"']
    assert modified(RootsModify(), 'a // "//" b//c') == ["a"]


def test_only_newlines_end_lines_as_published() -> None:
    """Text with the line ends of old Macs is one line, and its long 'words' go."""
    text = "several words\rin a second line\rand a third"
    glued = "x" * 15 + "\r" + "y" * 15
    assert modified(RootsModify(only_newlines=True), glued) == [""]
    assert modified(RootsModify(), glued, text) == [glued.replace("\r", "\n"), text.replace("\r", "\n")]
    assert modified(RootsModify(), "a\r\nb\u2028c\x85d") == ["a\nb\nc\nd"]


def test_spaces_remain_at_the_ends_as_published() -> None:
    text = "\ufffc\u4e2d\ufffc"
    assert modified(RootsModify(trim_once=True), text, language="zh") == [" \u4e2d "]
    assert modified(RootsModify(), text, language="zh") == ["\u4e2d"]


def test_letters_are_special_as_published_only() -> None:
    word = "ø" * 30
    assert modified(RootsModify(letters_are_special=True), f"a {word}b") == [f"a {word}b"]
    assert modified(RootsModify(), f"a {word}b") == ["a"]


def test_as_published_sets_all_switches() -> None:
    stage = RootsModify(as_published=True)
    assert all(getattr(stage, switch) for switch in SWITCHES)


def test_longest_words_and_unwanted_strings_of_a_recipe() -> None:
    stage = RootsModify(longest_word={"zh": 3, "en": None, "xx": 2}, unwanted=("b",))
    assert modified(stage, "abc a www cccc", language="zh") == ["a www"]
    assert modified(stage, "abc  a", language="en") == ["abc  a"]
    assert modified(stage, "aa aaa", language="xx") == ["aa"]
    assert modified(stage, "abc a", language="fr") == ["a"]


def test_wrong_settings_are_explained() -> None:
    with pytest.raises(RecipeError, match="in every word"):
        RootsModify(unwanted=("",))
    with pytest.raises(RecipeError, match="at least 1"):
        RootsModify(longest_word={"en": 0})


def test_batches() -> None:
    stage = RootsModify()
    batch = batch_of("a www", " b ", "c\xa0d", "", "e").slice(1, 3)
    out = stage(batch)
    assert out.column("text").to_pylist() == ["b", "c d", ""]
    assert out.schema.names == batch.schema.names
    assert out.schema.types == batch.schema.types
    assert out.column("id").to_pylist() == ["1", "2", "3"]
    assert stage(make_batch([])).num_rows == 0
    out.validate(full=True)
    mixed = make_batch(
        [{"id": code, "text": "a www  b", "source": "test", "language": code} for code in ("en", "zh", "fr")]
    )
    assert stage(mixed).column("text").to_pylist() == ["a b", "a www  b", "a b"]
    assert pickle.loads(pickle.dumps(stage)) == stage
    assert isinstance(out, pa.RecordBatch)
