"""Real evaluation sets planted into real text, as they are and reformatted; and the text without them.

Prints recall by set (`pytest -s`).
"""

from __future__ import annotations

import io
import json
import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
import zstandard

from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.items import read_items
from roots_pipeline.decontamination.stage import Decontaminate
from tests.dedup.driver import document, run

ITEMS_OF_A_SET = 60
DOCUMENTS_OF_A_LANGUAGE = 40
# Sources of the corpus that are evaluation sets themselves.
TRULY_CONTAMINATED = ("github:google-deepmind/xquad", "nltk:udhr2")


def read_zstd(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8", newline="\n")
        yield from map(json.loads, lines)


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
                if len(row["text"]) < 20_000 or row["source"] in TRULY_CONTAMINATED]
        chosen += dice.sample(rows, min(DOCUMENTS_OF_A_LANGUAGE, len(rows)))
    return chosen


@pytest.fixture(scope="module")
def items(stage: Decontaminate) -> dict[int, str]:
    """Item to text: some items of each set that can be found."""
    index, dice = stage.index, random.Random(2)
    texts = [item.text for evaluation in stage.evaluations for item in read_items(evaluation)]
    by_set: dict[int, list[int]] = defaultdict(list)
    for item in sorted({*np.flatnonzero(index.totals > 0).tolist(), *index.shorts.tolist()}):
        by_set[int(index.set_of[item])].append(item)
    chosen = [item for own in by_set.values() for item in dice.sample(own, min(ITEMS_OF_A_SET, len(own)))]
    return {item: texts[item] for item in chosen}


def reformatted(text: str, dice: random.Random) -> str:
    """Other case, punctuation, line breaks, normal form, and perhaps quoted as in a mail."""
    text = dice.choice([str.upper, str.lower, str.title, str])(text) if dice.random() < 0.8 else text
    signs = ["", ";", " - ", "…", "!", "»"]
    changed = []
    for word in text.split():
        # A sign inside a word may be what separates two words, so one there is replaced but not removed.
        body = regex.sub(r"(?<=\w)[,.:;!?](?=\w)", lambda _: dice.choice(signs[1:]), word)
        body = regex.sub(r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$", lambda found: dice.choice([*signs, found[0]]), body)
        changed += [body, dice.choice([" ", " ", " ", "  ", "\t", "\n"])]
    text = "".join(changed)
    if dice.random() < 0.5:
        text = unicodedata.normalize(dice.choice(["NFC", "NFD"]), text)
    return re.sub("^", "> ", text, flags=re.MULTILINE) if dice.random() < 0.3 else text


def half(text: str, dice: random.Random) -> str:
    """A bit more than one half of the words."""
    words = text.split()
    length = (len(words) + 1) // 2 + 1
    start = dice.randrange(len(words) - length + 1) if length < len(words) else 0
    return " ".join(words[start : start + length])


Found = dict[str, tuple[int, int, int]]


def plant(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]],
          change: Callable[[str, random.Random], str], inside: Callable[[int], bool]) -> Found:
    """Put each item into a document at a random place: set -> (planted, found, named as the cause).

    `inside`: whether the place may be between any two words; otherwise the item is a paragraph of its own.
    """
    dice, rows, planted = random.Random(3), [], []
    hosts = [row for row in documents if row["source"] not in TRULY_CONTAMINATED]
    for number, (item, text) in enumerate(items.items()):
        host = dice.choice(hosts)["text"]
        places = [found.start() for found in re.finditer(r"\s", host)] or [len(host)]
        place, gap = dice.choice(places), " " if inside(item) else "\n"
        planted.append(item)
        rows.append(document(str(number), host[:place] + gap + change(text, dice) + gap + host[place:]))
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for item, row in zip(planted, run(stage, rows, shards=2).rows, strict=True):
        counts = found[stage.index.tallies[stage.index.set_of[item]].name]
        counts["planted"] += 1
        counts["found"] += row["verdict"] is not None
        counts["named"] += row["cause"] == stage.index.name(item)
    return {name: (own["planted"], own["found"], own["named"]) for name, own in found.items()}


def recall(title: str, found: Found) -> float:
    planted, hit, named = (sum(column) for column in zip(*found.values(), strict=True))
    print(f"\n{title}: {hit} of {planted} found ({hit / planted:.4f}), {named} named as the cause")
    for name, (own_planted, own_hit, _) in found.items():
        print(f"  {name:24} {own_hit} of {own_planted}")
    return hit / planted


def anywhere(stage: Decontaminate) -> Callable[[int], bool]:
    """Items that the rules let count inside a sentence."""
    return lambda item: stage.index.words_in(item) >= stage.short_anywhere


def test_whole_items(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]]) -> None:
    found = plant(stage, items, documents, lambda text, _: text, anywhere(stage))
    assert recall("whole", found) >= 0.99
    named = sum(own[2] for own in found.values()) / sum(own[0] for own in found.values())
    assert named >= 0.99


def test_reformatted_items(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]]) -> None:
    assert recall("reformatted", plant(stage, items, documents, reformatted, lambda _: False)) >= 0.95


def test_partial_items(stage: Decontaminate, items: dict[int, str], documents: list[dict[str, Any]]) -> None:
    """Half of an item is found if that half is long enough to hold n-grams at all."""
    long = {item: text for item, text in items.items() if stage.index.words_in(item) >= 2 * stage.ngram}
    assert len(long) > 200
    assert recall("half", plant(stage, long, documents, half, lambda _: True)) >= 0.85


def test_nothing_is_found_where_nothing_is(stage: Decontaminate, documents: list[dict[str, Any]]) -> None:
    outcome = run(stage, documents, shards=3)
    sources: dict[str, list[bool]] = defaultdict(list)
    for row in outcome.rows:
        sources[row["source"]].append(row["verdict"] is not None)
        if row["verdict"] is not None and row["source"] not in TRULY_CONTAMINATED:
            print("false alarm:", row["id"], row["contamination_items"])
    assert sum(map(sum, (own for name, own in sources.items() if name not in TRULY_CONTAMINATED))) == 0
    for name in TRULY_CONTAMINATED:
        assert sources[name] and all(sources[name])
