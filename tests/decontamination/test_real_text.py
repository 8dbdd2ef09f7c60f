"""Real evaluation sets planted into real text, as they are and reformatted; and the text without them.

Prints recall by set (`pytest -s`).
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contamination_recall import (
    KNOWN_LEAKS,
    Change,
    choose_items,
    found_of,
    half,
    marked_up,
    reformatted,
    report,
    whole,
)
from benchmarks.decontamination import read_zstd
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.stage import Decontaminate
from tests.dedup.driver import document, run

ITEMS_OF_A_SET = 60
DOCUMENTS_OF_A_LANGUAGE = 40


@pytest.fixture(scope="module")
def stage(shared: Path) -> Decontaminate:
    files = sorted((shared / "data" / "eval").glob("*.jsonl.zst"))
    return Decontaminate(tuple(Evaluation(path.name.partition(".")[0], str(path)) for path in files))


@pytest.fixture(scope="module")
def documents(shared: Path) -> list[dict[str, Any]]:
    """Some documents of every language, those of evaluation sets included."""
    dice, chosen = random.Random(1), []
    for path in sorted((shared / "data" / "corpus").glob("*.jsonl.zst")):
        rows = [document(row["id"], row["text"], row["source"]) for row in read_zstd(path)
                if len(row["text"]) < 20_000 or row["source"] in KNOWN_LEAKS]
        chosen += dice.sample(rows, min(DOCUMENTS_OF_A_LANGUAGE, len(rows)))
    return chosen


@pytest.fixture(scope="module")
def items(stage: Decontaminate) -> dict[int, str]:
    return choose_items(stage, ITEMS_OF_A_SET, random.Random(2))


def recall(title: str, stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]], change: Change,
           inside: bool) -> float:
    hosts = [row["text"] for row in documents if row["source"] not in KNOWN_LEAKS]
    return report(title, found_of(stage, items, hosts, change, inside, random.Random(3)))


def test_whole_items(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]]) -> None:
    assert recall("whole, a paragraph", stage, items, documents, whole, False) >= 0.99
    assert recall("whole, in a sentence", stage, items, documents, whole, True) >= 0.98  # 0.99 over more items


def test_reformatted_items(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]]) -> None:
    assert recall("reformatted", stage, items, documents, reformatted, False) >= 0.95
    assert recall("marked up", stage, items, documents, marked_up, False) >= 0.95


def test_partial_items(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]]) -> None:
    """Half of an item is found if that half is long enough to hold n-grams at all."""
    long = {item: text for item, text in items.items() if stage.index.words_in(item) >= 2 * stage.ngram}
    assert len(long) > 200
    assert recall("half, in a sentence", stage, long, documents, half, True) >= 0.85


def test_nothing_is_found_where_nothing_is(stage: Decontaminate, documents: list[dict[str, Any]]) -> None:
    outcome = run(stage, documents, shards=3)
    sources: dict[str, list[bool]] = defaultdict(list)
    for row in outcome.rows:
        sources[row["source"]].append(row["verdict"] is not None)
        if row["verdict"] is not None and row["source"] not in KNOWN_LEAKS:
            print("false alarm:", row["id"], row["contamination_items"])
    assert sum(map(sum, (own for name, own in sources.items() if name not in KNOWN_LEAKS))) == 0
    for name in KNOWN_LEAKS:
        assert sources[name] and all(sources[name])
