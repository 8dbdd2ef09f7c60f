"""The stage of the ROOTS measures: equal to plain Python on any text, every switch, lists, odd batches."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from roots_pipeline.core.documents import DOCUMENT_SCHEMA, make_batch, text_buffers
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.presets import load_data
from roots_pipeline.rules.roots_data import special_characters
from roots_pipeline.rules.roots_measures import MEASURES, RootsMeasures
from roots_pipeline.rules.roots_normalisation import normalise, word_rules
from roots_pipeline.rules.thresholds import Thresholds
from roots_pipeline.text.roots_lists import Listed, list_tables
from roots_pipeline.text.roots_measures import measure_letters, measure_words
from roots_pipeline.text.roots_words import SPACED
from tests.rules import roots_twin as twin
from tests.rules.corpora import batch_of

# Letters with case in one shape only, special letters, all kinds of white space, punctuation that normalisation
# replaces by several characters, digits of three scripts, marks, invisible characters.
TRICKY = "aAbB.,-'’\"/()0１٣ \n\t\r\v\x1c\x85\u2028\xa0\u3000\ufffc—．…，" + (
    "éÉ́ΣσςΑİıøØГг\u0647ी上中我🙂\u200d\u200b\ufeff\xad\x00\x7fªǅﬁ\u2060"
)
STOP = {
    "en": ["a", "ab", "é", "ς", "i̇", "中"],
    "vi": ["a", "a b", "b a b", "b  a"],
    "zh": ["中", "中我", "中我a", "aa"],
}
FLAGGED = {"en": ["b"], "zh": ["我", "中"], "vi": ["b a"]}
texts = st.one_of(st.text(st.sampled_from(TRICKY), max_size=80), st.text(max_size=60), st.text("ab \n", max_size=90))


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("lists")
    paths = folder / "stop.json", folder / "flagged.json"
    for path, content in zip(paths, (STOP, FLAGGED), strict=True):
        path.write_text(json.dumps(content), "utf-8")
    return str(paths[0]), str(paths[1])


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.select(list(MEASURES)).to_pylist()
    return rows


@pytest.mark.parametrize("language", ["en", "vi", "zh"])
@settings(max_examples=70, deadline=None)
@given(texts=st.lists(texts, min_size=1, max_size=5), published=st.booleans(), paper=st.booleans())
@example(texts=["ΑΣ", "ΑΣ.", "ΑΣ\u0301Α", "aΣ'", "Σ", ".Σa"], published=True, paper=False)
@example(texts=["İ", "Ø", "Г", "øa", "ГØГ", "—", "a—a．…"], published=True, paper=False)
@example(texts=["ΑΣ\nΑ", "\x01ΑΣ\x01", "\x1c a \x85"], published=False, paper=False)
def test_any_text_as_in_plain_python(
    lists: tuple[str, str], language: str, texts: list[str], published: bool, paper: bool
) -> None:
    stage = RootsMeasures(
        stop_words=lists[0],
        flagged_words=lists[1],
        entries_as_written=True,
        letters_are_special=published,
        glue_lines=published,
        character_repetition="paper" if paper else "code",
        word_groups="paper" if paper else "code",
    )
    stop, flagged = STOP.get(language), FLAGGED.get(language)
    wanted = [twin.measures(text, language, stop, flagged, None, published, published, paper) for text in texts]
    assert rows_of(stage(batch_of(*texts, language=language))) == wanted


@settings(max_examples=60, deadline=None)
@given(text=texts, size=st.integers(1, 20), paper=st.booleans(), part=st.sampled_from([1, 2, 5, 1000]))
def test_any_length_of_ngrams_in_any_number_of_parts(text: str, size: int, paper: bool, part: int) -> None:
    rules, none = word_rules(special_characters(True), True), list_tables([Listed(frozenset(), frozenset())])
    data, offsets = text_buffers(pa.array([text], pa.large_string()))
    sizes = np.array([size])
    repetition, _ = measure_letters(data, offsets, rules, none, sizes, paper, part)
    assert repetition[0] == twin.character_repetition(text, size, paper)
    measured = measure_words(data, offsets, rules, none, sizes, np.array([SPACED]), np.array([-1]), part)
    assert measured[1][0] == twin.word_repetition(twin.words_of(text, twin.special_characters()), size)


@settings(max_examples=150, deadline=None)
@given(text=texts, lower_case=st.booleans(), glue_lines=st.booleans())
def test_normal_form(text: str, lower_case: bool, glue_lines: bool) -> None:
    assert normalise(text, lower_case=lower_case, glue_lines=glue_lines) == twin.normalise(text, lower_case, glue_lines)


def test_lower_case_has_only_two_exceptions() -> None:
    """The kernels lower-case one character at a time, apart from U+0130 and U+03A3."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assert [character for character in characters if len(character.lower()) > 1] == ["\u0130"]
    ends_of_words = "".join(f"a{character}\n" for character in characters).lower()
    assert ends_of_words == "".join(f"a{'ς' if c == 'Σ' else c.lower()}\n" for c in characters)


def test_capital_letters_begin_with_bytes_that_the_kernels_look_for() -> None:
    capitals = (chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000)
    leads = {capital.encode()[0] for capital in capitals if capital.lower() != capital}
    assert leads <= {*range(0xC2, 0xD7), 0xE1, 0xE2, *range(0xEA, 0x100)}


def test_formulas_of_code_and_paper() -> None:
    text = "ok_ok_good_ok"
    assert twin.character_repetition(text, 3) == 4 / 11
    assert twin.character_repetition(text, 3, paper=True) == 5 / 11
    batch = batch_of(text, language="zh")  # its n-grams have three characters
    code, paper = RootsMeasures(), RootsMeasures(character_repetition="paper")
    assert rows_of(code(batch))[0]["character_repetition_ratio"] == 4 / 11
    assert rows_of(paper(batch))[0]["character_repetition_ratio"] == 5 / 11


def test_vietnamese_groups_of_code_and_paper(tmp_path: Path) -> None:
    path = tmp_path / "stop.yaml"
    path.write_text("vi: [một hai, một hai ba]\nen: [one two]\n", "utf-8")
    text = "một hai ba bốn"
    for groups, wanted in (("code", 1 / 4), ("paper", 2 / 4)):
        stage = TypeAdapter(RootsMeasures).validate_python({"stop_words": str(path), "word_groups": groups})
        assert rows_of(stage(batch_of(text, language="vi")))[0]["stop_word_ratio"] == wanted
        assert rows_of(stage(batch_of("one two", language="en")))[0]["stop_word_ratio"] == 0


def test_letters_are_special_as_published_only() -> None:
    batch = batch_of("नदी", "हिन्दी नदी", language="hi")
    published, corrected = RootsMeasures(letters_are_special=True), RootsMeasures()
    assert rows_of(published(batch))[0]["special_character_ratio"] == 1 / 3
    assert rows_of(corrected(batch))[0]["special_character_ratio"] == 0
    assert len(special_characters(True)) == 1599
    assert special_characters(True) - special_characters(False) == {ord(c) for c in LETTERS}


LETTERS = "ªºøıɪπГهाीे्ॽাシッツンー一上士"


def test_entries_of_lists_as_written_are_met_only_if_they_look_like_words(tmp_path: Path) -> None:
    path = tmp_path / "stop.json"
    path.write_text(json.dumps({"hi": ["नदी", "\ufeffहै"], "id": ["Anda"]}), "utf-8")
    for as_written, wanted in ((True, 0), (False, 1)):
        stage = RootsMeasures(stop_words=str(path), entries_as_written=as_written, letters_are_special=True)
        assert rows_of(stage(batch_of("नदी है", language="hi")))[0]["stop_word_ratio"] == wanted
        assert rows_of(stage(batch_of("Anda anda", language="id")))[0]["stop_word_ratio"] == wanted


def test_glued_lines_as_published_only() -> None:
    """A newline is deleted or, as a space, a piece; single characters stand in for pieces."""
    batch = batch_of("中我\n中我", language="zh")
    assert rows_of(RootsMeasures(glue_lines=True)(batch))[0]["number_of_words"] == 4
    assert rows_of(RootsMeasures()(batch))[0]["number_of_words"] == 5


def test_as_published_sets_all_switches() -> None:
    stage = RootsMeasures(as_published=True)
    assert stage.letters_are_special and stage.entries_as_written and stage.glue_lines
    assert (stage.character_repetition, stage.word_groups) == ("code", "code")


def test_null_without_a_list(lists: tuple[str, str]) -> None:
    assert rows_of(RootsMeasures()(batch_of("the house")))[0]["flagged_word_ratio"] is None
    stage = RootsMeasures(stop_words=lists[0], flagged_words=lists[1])
    for language in ("fr", "xx", None):
        row = rows_of(stage(batch_of("a b", language=language)))[0]
        assert row["stop_word_ratio"] is row["flagged_word_ratio"] is None
        assert row["number_of_words"] == 2


def test_built_in_stop_words_are_those_of_their_language() -> None:
    batch = make_batch(
        [
            {"id": language, "text": "the le la house", "source": "test", "language": language}
            for language in ("en", "fr")
        ]
    )
    assert batch.num_rows == 2
    assert RootsMeasures()(batch).column("stop_word_ratio").to_pylist() == [1 / 4, 2 / 4]


def test_columns_and_slices() -> None:
    stage = RootsMeasures()
    batch = stage(batch_of("one", "two words", "three words here", ""))
    assert batch.schema.names == [*DOCUMENT_SCHEMA.names, *stage.gives]
    assert {str(batch.schema.field(name).type) for name in MEASURES} == {"double"}
    part = stage(batch_of("one", "two words", "three words here", "").slice(1, 2))
    assert part.column("number_of_words").to_pylist() == [2, 3]
    assert stage(make_batch([])).num_rows == 0


def test_each_language_has_its_own_settings_in_one_batch() -> None:
    texts = [("en", "abcabcabc" * 3), ("zh", "abcabcabc" * 3), ("ur", "a b c d e f g h " * 2)]
    batch = make_batch(
        [{"id": language, "text": text, "source": "test", "language": language} for language, text in texts]
    )
    for row, (language, text) in zip(rows_of(RootsMeasures()(batch)), texts, strict=True):
        alone = rows_of(RootsMeasures()(batch_of(text, language=language)))[0]
        assert row == alone
        published = twin.measures(text, language, None, None, None, False, False)
        assert row["character_repetition_ratio"] == published["character_repetition_ratio"]
        assert row["word_repetition_ratio"] == published["word_repetition_ratio"]


def test_groups_without_a_joint_are_all_cuts_of_an_entry(tmp_path: Path) -> None:
    """With real pieces, a pair may be cut anywhere; here pieces are words between spaces."""
    tables = list_tables([Listed(frozenset({"abc"}), frozenset(), (2,), "")])
    rules = word_rules(special_characters(True), True)
    data, offsets = text_buffers(pa.array(["ab c", "a bc", "abc x", "a b c", "ab cd"], pa.large_string()))
    five, spaced, first = (np.full(5, number) for number in (5, SPACED, 0))
    measured = measure_words(data, offsets, rules, tables, five, spaced, first)
    assert measured[2].tolist() == [1 / 2, 1 / 2, 1 / 2, 0, 0]


def test_parameters_follow_the_content_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "stop.json"
    path.write_text(json.dumps({"en": ["the"]}), "utf-8")
    first = RootsMeasures(stop_words=str(path))
    path.write_text(json.dumps({"en": ["house"]}), "utf-8")
    second = RootsMeasures(stop_words=str(path))
    assert first.parameters() != second.parameters()
    assert json.dumps(first.parameters())
    assert rows_of(second(batch_of("house")))[0]["stop_word_ratio"] == 1


def test_travels_to_a_worker(lists: tuple[str, str]) -> None:
    stage = RootsMeasures(stop_words=lists[0], flagged_words=lists[1], as_published=True)
    copy = pickle.loads(pickle.dumps(stage))
    assert copy == stage
    assert rows_of(copy(batch_of("a b"))) == rows_of(stage(batch_of("a b")))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", "{", "JSON or YAML"),
        ("a.json", "[1]", "{language"),
        ("a.yaml", "en: [yes, no]", "quotation marks"),
        ("a.yaml", "en: words", "list of strings"),
        ("a.yaml", 'en: [""]', "not empty"),
        ("a.yaml", "en: [\x00]", "JSON or YAML"),
    ],
)
def test_broken_lists_are_explained(tmp_path: Path, name: str, content: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(RecipeError, match=says):
        RootsMeasures(stop_words=str(path))


def test_missing_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read"):
        RootsMeasures(flagged_words=str(tmp_path / "none.json"))
    with pytest.raises(RecipeError, match="Models do not come with rootbloom"):
        RootsMeasures(sentencepiece={"zh": str(tmp_path / "none.model")})


def test_presets_limit_measures_of_the_stage_in_the_published_order() -> None:
    assert Thresholds(preset="roots").measures == MEASURES
    assert Thresholds(preset="roots_perplexity").measures == ("perplexity",)
    assert set(load_data("roots_limits")) == {"default", *(set(load_data("roots_parameters")) - {"default"})}
