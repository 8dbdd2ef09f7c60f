"""The planted documents of the sample corpus get the verdict they were planted for; ordinary ones are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from tests.chain.conftest import Chain

# Verdicts that are right for what was planted.
REPEATED = {"duplicate_line_fraction", "duplicate_line_character_fraction", "duplicate_paragraph_fraction",
            "duplicate_paragraph_character_fraction", *(f"top_{n}_gram_character_fraction" for n in (2, 3, 4)),
            *(f"duplicate_{n}_gram_character_fraction" for n in range(5, 11))}
RIGHT = {
    "exact_duplicate": {"exact_duplicates"},
    "too_short": {"word_count"},
    "keyword_spam": {"stop_word_count", "alphabetic_word_fraction", "mean_word_length", *REPEATED},
    "repeated_lines": REPEATED,
    "symbols": {"alphabetic_word_fraction", "mean_word_length", "hash_to_word_ratio", "stop_word_count", "word_count",
                "language"},
    "ellipsis_lines": {"ellipsis_line_fraction", "ellipsis_to_word_ratio"},
    "wrong_language": {"language"},
}


@pytest.fixture(scope="session")
def verdicts(chain: Chain) -> dict[str, str]:
    """Verdict of every document of the sources `web` and `code` by id; '' for kept ones."""
    found: dict[str, str] = {}
    for part in ("documents", "rejected"):
        for path in (chain.run / "corpus" / part).glob("*.parquet"):
            table = pq.read_table(path)
            names = table.column("verdict").to_pylist() if part == "rejected" else [""] * table.num_rows
            rows = zip(table.column("id").to_pylist(), table.column("source").to_pylist(), names, strict=True)
            found |= {key: verdict for key, source, verdict in rows if source in ("web", "code")}
    return found


@pytest.fixture(scope="session")
def labels(sample: Path) -> dict[str, str]:
    """What was planted, by id."""
    lines = [line for path in sorted((sample / "labels").glob("*.jsonl")) if path.stem != "leaks"
             for line in path.read_bytes().splitlines()]
    return {row["id"]: row["plant"] for row in map(orjson.loads, lines)}


def test_planted_documents_are_dropped_for_the_right_reason(verdicts: dict[str, str], labels: dict[str, str]) -> None:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for key, plant in labels.items():
        table[plant][verdicts[key] or "(kept)"] += 1
    print("\nplanted            verdicts")
    for plant, counts in sorted(table.items()):
        print(f"{plant:<18} {', '.join(f'{name} {count}' for name, count in counts.most_common())}")
    for plant, right in RIGHT.items():
        hits = sum(table[plant][name] for name in right)
        assert hits >= 0.9 * table[plant].total(), f"{plant}: {dict(table[plant])}"


def test_ordinary_documents_of_every_language_are_kept(verdicts: dict[str, str], labels: dict[str, str]) -> None:
    ordinary: dict[str, Counter[bool]] = defaultdict(Counter)
    for key, verdict in verdicts.items():
        if key not in labels:
            ordinary[key.split("/")[0] if "/" in key else key.rsplit("-", 1)[0]][verdict == ""] += 1
    assert len(ordinary) == 26 + 13
    lost = {language: counts[False] for language, counts in ordinary.items() if counts[False]}
    print(f"\nordinary documents: {sum(c.total() for c in ordinary.values())}, dropped: {lost or 'none'}")
    for language, counts in ordinary.items():
        assert counts[True] >= 0.97 * counts.total(), f"{language}: {dict(counts)}"
