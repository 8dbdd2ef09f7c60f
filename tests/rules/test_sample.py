"""What the rules do to the labelled sample corpus: planted bad documents go, ordinary ones stay, in every language."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.language import LanguageAgreement, LanguageIdentification
from roots_pipeline.rules.massivetext import MassiveText
from roots_pipeline.rules.roots_measures import RootsMeasures
from roots_pipeline.rules.roots_modify import RootsModify
from roots_pipeline.rules.thresholds import Thresholds
from tests.rules.corpora import sample_documents

# The measures that a planted fault shows in, by recipe.
MATCHING = {
    "massivetext": {
        "too_short": {"word_count"},
        "keyword_spam": {"stop_word_count"},
        "repeated_lines": {"duplicate_line_fraction", "duplicate_line_character_fraction"},
        "symbols": {"hash_to_word_ratio", "alphabetic_word_fraction", "mean_word_length"},
        "ellipsis_lines": {"ellipsis_line_fraction", "ellipsis_to_word_ratio"},
        "wrong_language": {"language"},
    },
    "roots": {
        "too_short": {"number_of_words"},
        "keyword_spam": {"stop_word_ratio"},
        "repeated_lines": {"word_repetition_ratio", "character_repetition_ratio"},
        "symbols": {"special_character_ratio", "number_of_words"},
        "wrong_language": {"language"},
    },
}
STAGES: dict[str, tuple[Map, ...]] = {
    "massivetext": (LanguageIdentification(), MassiveText(), LanguageAgreement(), Thresholds()),
    "roots": (RootsModify(), LanguageIdentification(), LanguageAgreement(), RootsMeasures(),
              Thresholds(preset="roots_built_in_lists")),
}
FILTERED_BY_ROOTS = ["ar", "bn", "ca", "en", "es", "eu", "fr", "hi", "id", "pt", "ur", "vi", "zh", "zht"]


@pytest.mark.parametrize("recipe", MATCHING)
def test_planted_documents_go_and_ordinary_ones_stay(sample: Path, recipe: str) -> None:
    documents, plants = sample_documents(sample)
    batch = make_batch(documents)
    for stage in STAGES[recipe]:
        batch = stage(batch)
    right: dict[str, list[bool]] = defaultdict(list)
    kept: dict[str, list[bool]] = defaultdict(list)
    for row in batch.to_pylist():
        plant, verdict = plants.get(row["id"]), row["verdict"]
        if plant is None:
            kept[row["language"]].append(verdict is None)
        elif plant in MATCHING[recipe] and not (
            recipe == "roots" and plant == "keyword_spam" and row["language"] not in FILTERED_BY_ROOTS
        ):
            right[plant].append(verdict in MATCHING[recipe][plant])
    assert right.keys() == MATCHING[recipe].keys() and len(kept) == 26
    for plant, answers in right.items():
        assert sum(answers) / len(answers) >= 0.95, plant
    for language, answers in kept.items():
        assert sum(answers) / len(answers) >= 0.98, language


def test_both_options_for_the_first_copy_keep_ordinary_documents(sample: Path) -> None:
    documents, plants = sample_documents(sample)
    ordinary = make_batch([document for document in documents if document["id"] not in plants])
    judged = Thresholds()(MassiveText(count_first_copy=True)(ordinary))
    assert judged.column("verdict").null_count >= 0.97 * judged.num_rows
