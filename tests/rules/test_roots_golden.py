"""The ROOTS stages give exactly the numbers of the original filters, on every stored case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from roots_pipeline.core.documents import make_batch, text_buffers
from roots_pipeline.rules.perplexity import perplexity_of
from roots_pipeline.rules.roots_data import special_characters
from roots_pipeline.rules.roots_measures import RootsMeasures
from roots_pipeline.rules.roots_modify import RootsModify
from roots_pipeline.rules.roots_normalisation import normalise, word_rules
from roots_pipeline.rules.thresholds import Thresholds
from roots_pipeline.text.roots_lists import Listed, list_tables
from roots_pipeline.text.roots_measures import measure_letters, measure_words
from roots_pipeline.text.roots_words import SPACED
from tests.rules.roots_golden import FILTERS, MEASURES, digest, golden, golden_documents, word_lists
from tests.rules.roots_twin import language_settings, single_characters

pytestmark = pytest.mark.shared
RULES = word_rules(special_characters(True), True)
NO_LISTS = list_tables([Listed(frozenset(), frozenset())])


def batch_of(cases: list[tuple[str, str]]) -> pa.RecordBatch:
    return make_batch(
        [
            {"id": str(k), "text": text, "source": "test", "language": language}
            for k, (language, text) in enumerate(cases)
        ]
    )


def differences(batch: pa.RecordBatch, wanted: list[dict[str, Any]]) -> list[tuple[int, str, Any, Any]]:
    """Where the measures of a batch are not equal to those of the golden rows."""
    found = []
    for original, measure in MEASURES.items():
        column = batch.column(measure).to_pylist()
        found += [
            (k, measure, column[k], row[original])
            for k, row in enumerate(wanted)
            if original in row and column[k] != row[original]
        ]
    return found


@pytest.fixture(scope="module")
def stage(shared: Path) -> RootsMeasures:
    stop_words, flagged_words = word_lists(shared)
    return RootsMeasures(stop_words=stop_words, flagged_words=flagged_words, as_published=True)


@pytest.fixture(scope="module")
def modified(shared: Path) -> pa.RecordBatch:
    documents = golden_documents(shared)
    return RootsModify(as_published=True)(batch_of([(row["lang"], text) for row, text in documents]))


@pytest.fixture(scope="module")
def measured(stage: RootsMeasures, modified: pa.RecordBatch) -> pa.RecordBatch:
    return stage(modified)


def test_modified_documents(shared: Path, modified: pa.RecordBatch) -> None:
    rows = [row for row, _ in golden_documents(shared)]
    assert len(rows) >= 500
    assert [digest(text) for text in modified.column("text").to_pylist()] == [row["modified_sha256"] for row in rows]


def test_measures_of_modified_documents(shared: Path, measured: pa.RecordBatch) -> None:
    assert differences(measured, [row["modified"]["values"] for row, _ in golden_documents(shared)]) == []


def test_measures_of_documents_as_they_are(shared: Path, stage: RootsMeasures) -> None:
    documents = golden_documents(shared)
    batch = stage(batch_of([(row["lang"], text) for row, text in documents]))
    assert differences(batch, [row["raw"]["values"] for row, _ in documents]) == []


def test_measures_of_chinese_by_single_characters(shared: Path, measured: pa.RecordBatch) -> None:
    rows = {row["sha256"]: row for row in golden(shared, "zh_standin_tokenizer")}
    wanted = [rows[row["sha256"]] if row["lang"] == "zh" else {} for row, _ in golden_documents(shared)]
    assert sum(map(bool, wanted)) == len(rows)
    assert differences(measured, wanted) == []


def test_verdicts_by_the_preset(shared: Path, measured: pa.RecordBatch) -> None:
    """Each filter alone, and all in order: the first that fails is the reason."""
    rows = [row["modified"] for row, _ in golden_documents(shared)]
    chinese = {row["sha256"]: row for row in golden(shared, "zh_standin_tokenizer")}
    for original, measure in FILTERS.items():
        alone = Thresholds(
            preset="",
            limits={
                language: {measure: entries[measure]}
                for language, entries in Thresholds(preset="roots").limits.items()
                if measure in entries
            },
        )
        kept = [verdict is None for verdict in alone(measured).column("verdict").to_pylist()]
        for (row, _), keep in zip(golden_documents(shared), kept, strict=True):
            wanted = row["modified"]["keep"] | chinese.get(row["sha256"], {"keep": {}})["keep"]
            assert keep == wanted[original], (row["lang"], row["id"], measure)
    verdicts = Thresholds(preset="roots")(measured).column("verdict").to_pylist()
    spaced = [k for k, (row, _) in enumerate(golden_documents(shared)) if row["lang"] != "zh"]
    assert [verdicts[k] for k in spaced] == [
        None if rows[k]["first_failure"] is None else FILTERS[rows[k]["first_failure"]] for k in spaced
    ]


def test_synthetic_modifications_and_normal_forms(shared: Path) -> None:
    rows = golden(shared, "modify_synthetic")
    cases = [(language, row["text"], wanted) for row in rows for language, wanted in row["modified"].items()]
    batch = RootsModify(as_published=True)(batch_of([(language, text) for language, text, _ in cases]))
    assert batch.column("text").to_pylist() == [wanted for _, _, wanted in cases]
    for row in rows:
        assert normalise(row["text"], lower_case=True, glue_lines=True) == row["zh_normalization"]
        assert normalise(row["text"], lower_case=False, glue_lines=True) == row["perplexity_normalization"]


def test_words_and_special_characters_of_synthetic_texts(shared: Path, stage: RootsMeasures) -> None:
    rows = golden(shared, "modify_synthetic")
    batch = stage(batch_of([("en", row["text"]) for row in rows]))
    assert batch.column("number_of_words").to_pylist() == [len(row["words"]) for row in rows]
    assert differences(batch, rows) == []


def test_normal_forms_of_chinese_documents(shared: Path) -> None:
    texts = {row["sha256"]: text for row, text in golden_documents(shared)}
    for row in golden(shared, "zh_standin_tokenizer"):
        normal = normalise(texts[row["sha256"]], lower_case=True, glue_lines=True)
        assert digest(normal) == row["normalized_sha256"]


def test_documents_made_of_list_entries(shared: Path, stage: RootsMeasures) -> None:
    lists = {
        kind: json.loads(Path(path).read_text("utf-8"))
        for kind, path in zip(("stop", "flag"), word_lists(shared), strict=True)
    }
    forms = {
        None: "{}".format, "upper": str.upper, "title": str.title, "punct": '("{}!")'.format, "digits": "{}12".format,
    }  # fmt: skip
    rows = golden(shared, "word_list_recipes")
    texts = []
    for row in rows:
        pieces = [
            entry[1] if entry[0] == "lit" else forms[entry[2]](lists[entry[0]][row["lang"]][entry[1]])
            for entry in row["recipe"]
        ]
        texts.append(row["joined_with"].join(pieces))
        assert digest(texts[-1]) == row["sha256"], row["case"]
    batch = stage(batch_of([(row["lang"], text) for row, text in zip(rows, texts, strict=True)]))
    assert differences(batch, rows) == []
    limits = Thresholds(preset="roots").limits
    for original, measure in FILTERS.items():
        for row, value in zip(rows, batch.column(measure).to_pylist(), strict=True):
            low, high = {**limits["default"], **limits[row["lang"]]}[measure] or (None, None)
            inside = (low is None or value >= low) and (high is None or value <= high)
            assert row["keep"].get(original, inside) == inside, (row["case"], measure)


@pytest.mark.parametrize("size", range(2, 11))
def test_character_repetition_by_length(shared: Path, size: int) -> None:
    rows = golden(shared, "character_repetition")
    column = pa.array([row["text"] for row in rows], pa.large_string())
    sizes = np.full(len(rows), size, np.int64)
    ratios, _ = measure_letters(*text_buffers(column), RULES, NO_LISTS, sizes, False)
    assert ratios.tolist() == [row["ratio_by_n"][str(size)] for row in rows]


@pytest.mark.parametrize("size", range(1, 8))
def test_word_repetition_by_length(shared: Path, size: int) -> None:
    rows = golden(shared, "word_repetition")
    column = pa.array([row["text"] for row in rows], pa.large_string())
    sizes, spaced, none = (np.full(len(rows), number) for number in (size, SPACED, -1))
    words, ratios, _, _ = measure_words(*text_buffers(column), RULES, NO_LISTS, sizes, spaced, none)
    assert ratios.tolist() == [row["ratio_by_n"][str(size)] for row in rows]
    assert words.tolist() == [row["number_words"] for row in rows]


def test_perplexity_with_a_stand_in_model(shared: Path) -> None:
    rows = golden(shared, "perplexity_standin")
    texts = {row["sha256"]: text for row, text in golden_documents(shared)}
    cases = [(row["text"], row["perplexity"]) for row in rows]
    cases += [(texts[row["sha256"]], row["perplexity_standin"]) for row in golden(shared, "zh_standin_tokenizer")]
    for text, wanted in cases:
        assert perplexity_of(text, single_characters, lambda line: -1.7 * len(line.split()), True) == wanted


def test_parameters_and_limits_are_the_published_ones(shared: Path) -> None:
    published = json.loads((shared / "spec" / "data" / "oscar_filter_params.json").read_text("utf-8"))
    bounds = {
        "number_of_words": ("number_words_min_cutoff", "number_words_max_cutoff"),
        "character_repetition_ratio": (None, "character_repetition_max_cutoff"),
        "word_repetition_ratio": (None, "word_repetition_max_cutoff"),
        "special_character_ratio": (None, "special_characters_max_cutoff"),
        "stop_word_ratio": ("stopwords_min_cutoff", None),
        "flagged_word_ratio": (None, "flagged_words_max_cutoff"),
        "language_score": ("lang_id_min_cutoff", None),
        "perplexity": (None, "perplexity_max_cutoff"),
    }
    presets = [Thresholds(preset=name).limits for name in ("roots", "roots_language", "roots_perplexity")]
    for language, wanted in published.items():
        own: dict[str, Any] = {}
        for limits in presets:
            own |= {**limits["default"], **limits[language]}
        assert own == {measure: (wanted.get(low), wanted.get(high)) for measure, (low, high) in bounds.items()}
        settings = language_settings(language)
        removes = wanted["cond_remove_long_words"]
        assert removes == wanted["cond_remove_words_with_incorrect_substrings"]
        assert settings["longest_word"] == (wanted["length_word_max_cutoff"] if removes else None)
        assert (settings["words"] == "pieces") == wanted["tokenization"]
        assert settings["character_ngram"] == wanted["character_repetition_length"]
        assert settings["word_ngram"] == wanted["word_repetition_length"]
        assert settings["groups"] == wanted["words_augmentation_group_sizes"]
        assert settings["joint"] == wanted["words_augmentation_join_char"]
