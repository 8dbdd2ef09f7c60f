"""What the rules do to the labelled sample corpus: planted bad documents go, ordinary ones stay, in every language."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from roots_pipeline.core.documents import make_batch
from roots_pipeline.rules.language import LanguageAgreement, LanguageIdentification
from roots_pipeline.rules.massivetext import MassiveText
from roots_pipeline.rules.thresholds import Thresholds
from tests.rules.corpora import sample_documents

# The measures that a planted fault shows in.
MATCHING = {
    "too_short": {"word_count"},
    "keyword_spam": {"stop_word_count"},
    "repeated_lines": {"duplicate_line_fraction", "duplicate_line_character_fraction", "stop_word_count"},
    "symbols": {"hash_to_word_ratio", "alphabetic_word_fraction", "mean_word_length"},
    "ellipsis_lines": {"ellipsis_line_fraction", "ellipsis_to_word_ratio"},
    "wrong_language": {"language"},
}


def test_planted_documents_go_and_ordinary_ones_stay(sample: Path) -> None:
    documents, plants = sample_documents(sample)
    batch = make_batch(documents)
    for stage in (LanguageIdentification(), MassiveText(), LanguageAgreement(), Thresholds()):
        batch = stage(batch)
    table: dict[str, Counter[str]] = defaultdict(Counter)
    kept: dict[str, list[bool]] = defaultdict(list)
    matched: list[bool] = []
    for row in batch.to_pylist():
        plant, verdict = plants.get(row["id"], "ordinary"), row["verdict"]
        table[plant][verdict or "kept"] += 1
        if plant == "ordinary":
            kept[row["language"]].append(verdict is None)
        elif plant in MATCHING:
            matched.append(verdict in MATCHING[plant])
    for plant, verdicts in sorted(table.items()):
        print(f"{plant:16} " + ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common()))
    assert sum(matched) / len(matched) >= 0.9
    assert len(kept) == 26
    for language, results in kept.items():
        assert sum(results) / len(results) >= 0.97, language


def test_both_options_for_the_first_copy_keep_ordinary_documents(sample: Path) -> None:
    documents, plants = sample_documents(sample)
    ordinary = make_batch([document for document in documents if document["id"] not in plants])
    judged = Thresholds()(MassiveText(count_first_copy=True)(ordinary))
    assert judged.column("verdict").null_count >= 0.97 * judged.num_rows
