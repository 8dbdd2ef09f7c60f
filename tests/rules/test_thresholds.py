"""Verdicts from limits."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from roots_pipeline.core.documents import make_batch, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.thresholds import Thresholds
from roots_pipeline.text.measures import MEASURES

LIMITS: Any = {
    "default": {"a": [1, 3], "b": [None, 10]},
    "fr": {"a": [2, None], "c": [0, None]},
    "hi": {"b": None},
}


def judged(rows: list[dict[str, Any]], **settings: Any) -> list[str | None]:
    batch = make_batch([{"id": str(k), "text": "", "source": "s", **row} for k, row in enumerate(rows)])
    for name in "abc":
        batch = with_columns(batch, {name: pa.array([row.get(name) for row in rows], pa.float64())})
    verdicts: list[str | None] = Thresholds(**{"preset": "", "limits": LIMITS, **settings})(batch)[
        "verdict"
    ].to_pylist()
    return verdicts


def test_limits_themselves_are_allowed() -> None:
    rows = [{"a": value} for value in (0.999, 1, 3, 3.001)]
    assert judged(rows) == ["a", None, None, "a"]


def test_a_language_overrides_entry_by_entry() -> None:
    assert judged([{"a": 1.5, "language": language} for language in ("en", "fr", None)]) == [None, "a", None]
    assert judged([{"a": 9, "language": "fr"}]) == [None]
    assert judged([{"b": 11, "language": language} for language in ("en", "fr", "hi")]) == ["b", "b", None]
    assert judged([{"c": -1, "language": language} for language in ("en", "fr")]) == [None, "c"]


def test_the_first_measure_in_order_is_named() -> None:
    assert judged([{"a": 9, "b": 11}, {"a": 0, "b": 11, "c": -1, "language": "fr"}]) == ["a", "a"]


def test_null_has_no_say_and_verdicts_stay() -> None:
    assert judged([{}, {"a": None, "b": 11}, {"a": 9, "verdict": "older"}]) == [None, "b", "older"]


def test_an_empty_batch() -> None:
    assert judged([]) == []


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"language": st.sampled_from(["en", "fr", "hi", None, "fr-x"]), "verdict": st.sampled_from([None, "x"])}
            | {name: st.none() | st.sampled_from([-1.0, 0.5, 1.0, 2.0, 3.0, 4.0, 10.0, 11.0]) for name in "abc"}
        ),
        max_size=12,
    )
)
def test_rows_are_judged_one_by_one(rows: list[dict[str, Any]]) -> None:
    def verdict(row: dict[str, Any]) -> str | None:
        if row["verdict"] is not None:
            return str(row["verdict"])
        limits = {**LIMITS["default"], **LIMITS.get(row["language"], {})}
        for measure in "abc":
            low, high = limits.get(measure) or (None, None)
            value = row[measure]
            if value is not None and ((low is not None and value < low) or (high is not None and value > high)):
                return measure
        return None

    assert judged(rows) == [verdict(row) for row in rows]


def test_presets_are_changed_entry_by_entry() -> None:
    stage = Thresholds(limits={"en": {"mean_word_length": None}, "default": {"word_count": (10, None)}})
    assert stage.limits["en"]["mean_word_length"] is None
    assert stage.limits["default"]["word_count"] == (10, None)
    assert stage.limits["default"]["top_2_gram_character_fraction"] == (None, 0.2)
    assert Thresholds(limits=stage.limits) == stage


def test_the_papers_values_for_english() -> None:
    limits = {**Thresholds().limits["default"], **Thresholds().limits["en"]}
    assert set(limits) == set(MEASURES)
    assert limits["word_count"] == (50, 100_000)
    assert limits["mean_word_length"] == (3, 10)
    assert limits["hash_to_word_ratio"] == limits["ellipsis_to_word_ratio"] == (None, 0.1)
    assert limits["bullet_line_fraction"] == (None, 0.9)
    assert limits["ellipsis_line_fraction"] == (None, 0.3)
    assert limits["alphabetic_word_fraction"] == (0.8, None)
    assert limits["stop_word_count"] == (2, None)
    assert limits["duplicate_line_fraction"] == limits["duplicate_paragraph_fraction"] == (None, 0.3)
    assert limits["duplicate_line_character_fraction"] == (None, 0.2)
    assert limits["duplicate_paragraph_character_fraction"] == (None, 0.2)
    table = {2: 0.2, 3: 0.18, 4: 0.16, 5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1}
    for n, limit in table.items():
        kind = "top" if n < 5 else "duplicate"
        assert limits[f"{kind}_{n}_gram_character_fraction"] == (None, limit)


def test_presets_limit_known_measures_only() -> None:
    for entries in Thresholds().limits.values():
        assert set(entries) <= set(MEASURES)


def test_a_limit_without_its_measure_is_an_error() -> None:
    with pytest.raises(RecipeError, match=r"'word_count'.*before it"):
        Thresholds()(make_batch([{"id": "1", "text": "", "source": "s"}]))


@pytest.mark.parametrize("settings", [{"limits": {"en": {"a": (3, 1)}}}, {"preset": "gofer"}])
def test_settings_that_cannot_be(settings: Any) -> None:
    with pytest.raises(RecipeError):
        Thresholds(**settings)


def test_needs_no_text_and_is_built_from_a_recipe() -> None:
    stage = TypeAdapter(Thresholds).validate_python({"preset": "", "limits": LIMITS})
    assert stage == Thresholds(preset="", limits=LIMITS)
    assert stage.needs == ("language", "verdict", "a", "b", "c")
    assert set(stage.gives) == {"verdict"}
    with pytest.raises(ValueError, match="limits"):
        TypeAdapter(Thresholds).validate_python({"limits": {"en": {"a": [1, "many"]}}})


def test_every_order_of_rows_gives_the_same_verdicts() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 9, "language": "en"},
        {"a": 9, "language": "fr"},
        {"b": 11, "language": "hi"},
        {"b": 11},
    ]
    alone = {str(row): judged([row])[0] for row in rows}
    for order in itertools.permutations(rows):
        assert judged(list(order)) == [alone[str(row)] for row in order]


def test_a_preset_may_be_based_on_another() -> None:
    published, ours = Thresholds(preset="roots").limits, Thresholds(preset="roots_built_in_lists").limits
    assert list(ours["default"]) == list(published["default"]) and ours["default"]["stop_word_ratio"] is None
    assert ours["en"] == {**published["en"], "stop_word_ratio": (0.1, None)}
    assert published["en"]["stop_word_ratio"] == (0.3, None)
