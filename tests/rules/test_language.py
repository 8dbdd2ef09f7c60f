"""Language identification survives any text; agreement judges what it should and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pycld2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from roots_pipeline.core.documents import make_batch, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.columns import language_code
from roots_pipeline.rules.language import LanguageAgreement, LanguageIdentification, detectable
from tests.rules.corpora import batch_of, sample_documents

ENGLISH = "The committee met on Tuesday to discuss the new library, which will open in the spring of next year. "
FRENCH = "Le comité s'est réuni mardi pour parler de la nouvelle bibliothèque, qui ouvrira au printemps prochain. "


def identified(*texts: str, language: str | None = "en", **settings: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = LanguageIdentification(**settings)(batch_of(*texts, language=language)).to_pylist()
    return rows


def test_columns() -> None:
    english, french, nothing = identified(ENGLISH, FRENCH, "")
    assert (english["detected_language"], english["language_reliable"]) == ("en", 1)
    assert english["language_score"] > 0.9
    assert french["detected_language"] == "fr"
    assert nothing["detected_language"] is None
    assert nothing["language_score"] == nothing["second_language_share"] == nothing["language_reliable"] == 0


def test_share_of_the_second_language() -> None:
    (mixed,) = identified(ENGLISH * 6 + FRENCH * 3)
    assert mixed["detected_language"] == "en"
    assert 0.2 < mixed["second_language_share"] < 0.5


@pytest.mark.parametrize("quick", [0, 900])
def test_of_mixed_text_only_the_prefix_is_looked_at(quick: int) -> None:
    (row,) = identified(ENGLISH * 10 + FRENCH * 50, prefix_bytes=len(ENGLISH) * 10, quick_bytes=quick)
    assert row["detected_language"] == "en" and row["language_score"] > 0.95


def test_beginning_middle_and_end_suffice_for_text_in_one_language(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    real = pycld2.detect

    def detect(text: bytes, **options: bool) -> Any:
        seen.append(text)
        return real(text, **options)

    monkeypatch.setattr(pycld2, "detect", detect)
    for text, times in ((FRENCH * 50, 1), (FRENCH * 30 + ENGLISH * 20, 2), (FRENCH * 3, 1)):
        seen.clear()
        (row,) = identified(text, quick_bytes=900)
        assert row["detected_language"] == "fr" and len(seen) == times
        assert all(piece in text for piece in seen[0].decode().split("\n") if len(text) > 900)


@pytest.mark.parametrize("size", range(1, 12))
def test_no_character_is_cut(size: int) -> None:
    identified("日本語😀é" * 3, prefix_bytes=size, quick_bytes=0)
    identified("日本語😀é" * 3, prefix_bytes=size * 3, quick_bytes=size)


def test_missing_languages_are_filled_in() -> None:
    assert [row["language"] for row in identified(FRENCH, "", language=None)] == ["fr", None]
    assert [row["language"] for row in identified(FRENCH, language=None, fill=False)] == [None]
    assert [row["language"] for row in identified(FRENCH, language="en")] == ["en"]


@pytest.mark.parametrize("unfit", ["\x00", "\x1b", "\x7f", "\x85", "\ufdd0", "\ufffe", "\U0010ffff", "\x0b"])
def test_characters_that_cld2_refuses(unfit: str) -> None:
    (row,) = identified(unfit + ENGLISH.replace(" ", f" {unfit}"))
    assert row["detected_language"] == "en"


def test_every_code_point_is_survived() -> None:
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(everything[start : start + 997]) for start in range(0, len(everything), 997)]
    assert len(identified(*texts)) == len(texts)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=300), max_size=4))
def test_any_text_is_survived(texts: list[str]) -> None:
    assert len(identified(*texts)) == len(texts)


def test_language_codes() -> None:
    assert [language_code(code) for code in ("zh-TW", "zhs", "indic-hi", "niger-congo-sw", "zh_Hant", "iw", "en")] == [
        "zht", "zh", "hi", "sw", "zht", "he", "en",
    ]  # fmt: skip
    roots = (
        "ar as bn ca en es eu fr gu hi id ig kn lg ln ml mr ne nso ny or pa pt rn rw sn st sw ta te tn ts ur vi wo xh"
    )
    assert set(roots.split()) | {"yo", "zh", "zht", "zu", "ak"} <= detectable()


def agreed(rows: list[dict[str, Any]], **settings: Any) -> list[str | None]:
    batch = make_batch([{"id": str(k), "text": "", "source": "s", **row} for k, row in enumerate(rows)])
    usual = {"language_score": 0.99, "language_reliable": 1.0}
    batch = with_columns(
        batch, {"detected_language": pa.array([row.get("detected_language") for row in rows], pa.string())}
    )
    for name, value in usual.items():
        batch = with_columns(batch, {name: pa.array([row.get(name, value) for row in rows], pa.float64())})
    verdicts: list[str | None] = LanguageAgreement(**settings)(batch)["verdict"].to_pylist()
    return verdicts


def test_agreement() -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"language": "en", "detected_language": "fr"}, "language"),
        ({"language": "en", "detected_language": "en"}, None),
        ({"language": "en", "detected_language": None}, None),
        ({"language": None, "detected_language": "fr"}, None),
        ({"language": "fon", "detected_language": "fr"}, None),  # CLD2 does not know Fon
        ({"language": "en", "detected_language": "fr", "language_reliable": 0.0}, None),
        ({"language": "en", "detected_language": "fr", "language_score": 0.59}, None),
        ({"language": "en", "detected_language": "fr", "language_score": 0.6}, "language"),
        ({"language": "en", "detected_language": "fr", "verdict": "older"}, "older"),
        ({"language": "id", "detected_language": "ms"}, None),
        ({"language": "zh-tw", "detected_language": "zht"}, None),
        ({"language": "zh", "detected_language": "zht"}, "language"),
        ({"language": "ne", "detected_language": "hi"}, "language"),
    ]
    assert agreed([row for row, _ in cases]) == [verdict for _, verdict in cases]
    assert agreed([{"language": "zh", "detected_language": "zht"}], equivalent=[["zh", "zht"]]) == [None]
    assert agreed([]) == []


def test_ordinary_documents_of_the_sample_are_recognised(sample: Path) -> None:
    documents, plants = sample_documents(sample)
    ordinary = [document for document in documents if document["id"] not in plants]
    for row in LanguageIdentification()(make_batch(ordinary)).to_pylist():
        assert (row["detected_language"], row["language_reliable"]) == (row["language"], 1), row["id"]


def test_settings() -> None:
    with pytest.raises(RecipeError):
        LanguageIdentification(prefix_bytes=0)
    with pytest.raises(RecipeError):
        LanguageAgreement(minimum_score=60)
    assert TypeAdapter(LanguageAgreement).validate_python({"equivalent": [["a", "b"]]}).equivalent == [["a", "b"]]
    assert "text" not in LanguageAgreement().needs
    assert set(LanguageAgreement().gives) == {"verdict"}
