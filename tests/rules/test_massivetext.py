"""The stage around the kernels: settings by language, stop words, how it is built."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from roots_pipeline.core.documents import DOCUMENT_SCHEMA, make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.massivetext import MassiveText
from roots_pipeline.text.measures import MEASURES
from tests.rules.corpora import batch_of


def value(batch: pa.RecordBatch, measure: str, row: int = 0) -> float | None:
    found: float | None = batch.column(measure).to_pylist()[row]
    return found


def test_measures_are_float_columns_after_the_document() -> None:
    stage = MassiveText()
    batch = stage(batch_of("The quick brown fox.", "", "x"))
    assert batch.schema.names == [*DOCUMENT_SCHEMA.names, *stage.gives]
    assert stage.gives == MEASURES
    assert {str(batch.schema.field(name).type) for name in MEASURES} == {"double"}


def test_an_empty_batch() -> None:
    assert MassiveText()(make_batch([])).num_rows == 0


def test_slices_of_a_batch_see_their_own_text() -> None:
    batch = batch_of("one", "two words", "three words here", "")
    assert MassiveText()(batch.slice(1, 2)).column("word_count").to_pylist() == [2, 3]


@pytest.mark.parametrize("language", ["zh", "zht", "ja", "zh-TW"])
def test_letters_are_words_in_scripts_without_spaces(language: str) -> None:
    assert value(MassiveText()(batch_of("我们是学生", language=language)), "word_count") == 5


def test_words_are_what_white_space_separates_elsewhere() -> None:
    assert value(MassiveText()(batch_of("我们是学生", language="en")), "word_count") == 1
    assert value(MassiveText(words={"zh": "whitespace"})(batch_of("我们是学生", language="zh")), "word_count") == 1


def test_stop_words_are_those_of_the_language() -> None:
    texts = ("the cat and the dog", "le chat et le chien", "THE CAT AND")
    english, french = MassiveText()(batch_of(*texts)), MassiveText()(batch_of(*texts, language="fr"))
    assert english.column("stop_word_count").to_pylist() == [2, 0, 2]
    assert french.column("stop_word_count").to_pylist() == [0, 2, 0]


@pytest.mark.parametrize("language", [None, "xx"])
def test_no_list_of_stop_words_is_no_count(language: str | None) -> None:
    batch = MassiveText()(batch_of("the be to of", language=language))
    assert value(batch, "stop_word_count") is None
    assert value(batch, "word_count") == 4


def test_lists_of_a_recipe_add_to_the_built_in_ones() -> None:
    stage = MassiveText(stop_words={"xx": ["qux"], "fr": []})
    assert value(stage(batch_of("qux foo", language="xx")), "stop_word_count") == 1
    assert value(stage(batch_of("le la", language="fr")), "stop_word_count") is None
    assert value(stage(batch_of("the of")), "stop_word_count") == 2


def test_every_built_in_stop_word_is_found_alone() -> None:
    stage = MassiveText()
    for language, words in stage.stop_words.items():
        batch = stage(batch_of(*words, " ".join(words), language=language))
        assert batch.column("stop_word_count").to_pylist() == [1] * len(words) + [len(words)], language


def test_the_papers_english_words() -> None:
    assert MassiveText().stop_words["en"] == ["the", "be", "to", "of", "and", "that", "have", "with"]


def test_first_copy_may_count() -> None:
    batch = batch_of("a b c\na b c\nd e f")
    assert value(MassiveText()(batch), "duplicate_line_fraction") == pytest.approx(1 / 3)
    assert value(MassiveText(count_first_copy=True)(batch), "duplicate_line_fraction") == pytest.approx(2 / 3)


def test_bullets() -> None:
    batch = batch_of("* one\n* two\n- three\nfour")
    assert value(MassiveText()(batch), "bullet_line_fraction") == 0.75
    assert value(MassiveText(bullets="-")(batch), "bullet_line_fraction") == 0.25
    assert value(MassiveText(convention="datatrove")(batch), "bullet_line_fraction") == 0.25


@pytest.mark.parametrize(
    "settings",
    [
        {"words": {"zh": "syllables"}},
        {"stop_words": {"en": ["of the"]}},
        {"stop_words": {"en": [""]}},
        {"convention": "datatrove", "count_first_copy": True},
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object]) -> None:
    with pytest.raises(RecipeError, match="massivetext"):
        MassiveText(**settings)  # type: ignore[arg-type]


def test_built_from_a_recipe_and_sent_to_a_worker() -> None:
    stage = TypeAdapter(MassiveText).validate_python({"convention": "datatrove", "stop_words": {"en": ["and"]}})
    assert pickle.loads(pickle.dumps(stage)) == stage
    assert stage.parameters()["stop_words"]["en"] == ["and"]
    assert TypeAdapter(MassiveText).dump_json(stage)
