"""With `convention: datatrove`, verdicts are those of datatrove's Gopher filters given the words of `str.split`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.documents import make_batch
from roots_pipeline.rules.massivetext import MassiveText
from roots_pipeline.rules.thresholds import Limits, Thresholds
from tests.rules.corpora import real_documents, sample_documents

quality = pytest.importorskip("datatrove.pipeline.filters.gopher_quality_filter")
repetition = pytest.importorskip("datatrove.pipeline.filters.gopher_repetition_filter")
pytestmark = pytest.mark.peers

# The filters' defaults, in the order in which they look.
QUALITY: Limits = {
    "default": {
        "word_count": (50, 100_000),
        "mean_word_length": (3, 10),
        "hash_to_word_ratio": (None, 0.1),
        "ellipsis_to_word_ratio": (None, 0.1),
        "bullet_line_fraction": (None, 0.9),
        "ellipsis_line_fraction": (None, 0.3),
        "alphabetic_word_fraction": (0.8, None),
        "stop_word_count": (2, None),
    }
}
REPETITION: Limits = {
    "default": {
        "duplicate_paragraph_fraction": (None, 0.3),
        "duplicate_paragraph_character_fraction": (None, 0.2),
        "duplicate_line_fraction": (None, 0.3),
        "duplicate_line_character_fraction": (None, 0.2),
        **{f"top_{n}_gram_character_fraction": (None, limit) for n, limit in ((2, 0.2), (3, 0.18), (4, 0.16))},
        **{f"duplicate_{n}_gram_character_fraction": (None, (20 - n) / 100) for n in range(5, 11)},
    }
}
REASONS = {
    "gopher_short_doc": "word_count",
    "gopher_long_doc": "word_count",
    "gopher_below_avg_threshold": "mean_word_length",
    "gopher_above_avg_threshold": "mean_word_length",
    "gopher_too_many_hashes": "hash_to_word_ratio",
    "gopher_too_many_ellipsis": "ellipsis_to_word_ratio",
    "gopher_too_many_bullets": "bullet_line_fraction",
    "gopher_too_many_end_ellipsis": "ellipsis_line_fraction",
    "gopher_below_alpha_threshold": "alphabetic_word_fraction",
    "gopher_enough_stop_words": "stop_word_count",
    "dup_para_frac": "duplicate_paragraph_fraction",
    "dup_para_char_frac": "duplicate_paragraph_character_fraction",
    "dup_line_frac": "duplicate_line_fraction",
    "dup_line_char_frac": "duplicate_line_character_fraction",
    **{f"top_{n}_gram": f"top_{n}_gram_character_fraction" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"duplicate_{n}_gram_character_fraction" for n in range(5, 11)},
}


@pytest.fixture(autouse=True)
def whitespace_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (quality, repetition):
        monkeypatch.setattr(module, "split_into_words", lambda text, language: text.split())


def assert_same_verdicts(documents: list[dict[str, Any]]) -> set[str | None]:
    from datatrove.data import Document

    english = [{**document, "language": "en"} for document in documents if document["text"]]
    measured = MassiveText(convention="datatrove", words={"en": "whitespace"})(make_batch(english))
    seen: set[str | None] = set()
    for limits, peer in (
        (QUALITY, quality.GopherQualityFilter()),
        (REPETITION, repetition.GopherRepetitionFilter()),
    ):
        ours = Thresholds(preset="", limits=limits)(measured).column("verdict").to_pylist()
        for document, verdict in zip(english, ours, strict=True):
            answer = peer.filter(Document(text=document["text"], id=document["id"]))
            wanted = None if answer is True else REASONS[answer[1]]
            assert verdict == wanted, document["id"]
            seen.add(verdict)
    return seen


def test_sample_corpus(sample: Path) -> None:
    documents, _ = sample_documents(sample)
    assert len(assert_same_verdicts(documents)) >= 8


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "fr", "ar", "hi", "vi", "zh"])
def test_real_text(shared: Path, language: str) -> None:
    assert None in assert_same_verdicts(real_documents(shared, language, 120))
