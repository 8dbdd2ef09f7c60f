"""The planted documents of the sample corpus get the verdict they were planted for; ordinary ones are kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

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
    "near_duplicate": {"near_duplicates"},
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
        assert hits >= 0.95 * table[plant].total(), f"{plant}: {dict(table[plant])}"


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


@pytest.fixture(scope="session")
def corpus(chain: Chain) -> dict[str, dict[str, Any]]:
    """All rows of the sources `web` and `posts` by id, kept or not."""
    found: dict[str, dict[str, Any]] = {}
    for part in ("documents", "rejected"):
        for path in (chain.run / "corpus" / part).glob("*.parquet"):
            found |= {row["id"]: row for row in pq.read_table(path).to_pylist() if row["source"] in ("web", "posts")}
    return found


def test_copies_name_the_document_that_they_were_made_from(corpus: dict[str, dict[str, Any]], sample: Path) -> None:
    planted = [row for path in sorted((sample / "labels").glob("??.jsonl"))
               for row in map(orjson.loads, path.read_bytes().splitlines())
               if row["plant"] in ("exact_duplicate", "near_duplicate")]
    assert len(planted) >= 25
    for row in planted:
        assert corpus[row["id"]]["cause"] == row["twin"], row
        assert corpus[row["twin"]].get("verdict") is None


def test_shared_passages_stay_once(corpus: dict[str, dict[str, Any]], sample: Path) -> None:
    planted = [row for path in sorted((sample / "labels").glob("??.jsonl"))
               for row in map(orjson.loads, path.read_bytes().splitlines()) if row["plant"] == "shared_passage"]
    lines = [row for path in (sample / "web").glob("??.jsonl") for row in map(orjson.loads, path.open("rb"))]
    before = {row["id"]: row["text"] for row in lines}
    assert planted
    for row in planted:
        shared = max(before[row["twin"]].split("\n"), key=lambda line: len(line) if line in before[row["id"]] else 0)
        assert shared in before[row["id"]] and len(shared.encode()) >= 100
        after = [corpus[row["id"]], corpus[row["twin"]]]
        assert sum(shared in own["text"] for own in after) == 1, row
        assert sum(own["cut_bytes"] for own in after) >= len(shared.encode())
        assert all(own.get("verdict") is None for own in after)


def test_leaks_are_found_with_their_item_and_nothing_else(corpus: dict[str, dict[str, Any]], sample: Path) -> None:
    leaks = list(map(orjson.loads, (sample / "labels" / "leaks.jsonl").open("rb")))
    for row in leaks:
        found = corpus[row["id"]]
        if row["plant"] == "not_contaminated":
            assert found.get("verdict") is None, row
        elif found["verdict"] == "contaminated":
            assert found["cause"].endswith("/" + row["twin"]), row
        else:  # of another rule, which drops the document all the same
            assert found["verdict"], row
    verdicts = Counter(corpus[row["id"]].get("verdict") for row in leaks if row["plant"] == "contaminated")
    assert verdicts["contaminated"] >= 0.9 * verdicts.total()
