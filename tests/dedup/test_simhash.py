"""SimHash duplicates against brute force, as published and mended; pairs of the original ROOTS code."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.dedup.simhash import SimHashDuplicates
from tests.dedup.driver import Outcome, document, run
from tests.text.test_simhash import simhash

WORDS = [f"word{k}" for k in range(40)]


def hash_of(row: dict[str, Any], stage: SimHashDuplicates) -> int | None:
    unit = 1 if row.get("language") == "en" else 0
    if not row["text"] and not stage.as_published:
        return None
    return simhash(row["text"].lower(), unit, stage.window, False, stage.as_published)


def brute_force(rows: list[dict[str, Any]], stage: SimHashDuplicates) -> dict[str, str]:
    """What each dropped document is dropped for."""
    place = {name: rank for rank, name in enumerate(stage.prefer)}
    long = {row["id"]: len(row["text"]) > stage.long_characters for row in rows}
    hashes = {row["id"]: hash_of(row, stage) for row in rows}
    order = [row["id"] for row in sorted(
        (row for row in rows if hashes[row["id"]] is not None and row.get("verdict") is None),
        key=lambda row: (not long[row["id"]] and not stage.as_published,
                         place.get(row["source"], len(place)), row["id"]),
    )]
    near = {(a, b) for a in order for b in order
            if (hashes[a] ^ hashes[b]).bit_count() <= stage.distance}  # type: ignore[operator]
    cause: dict[str, str] = {}
    if not stage.as_published:
        for at, name in enumerate(order):
            kept = [other for other in order[:at] if other not in cause and (other, name) in near]
            if kept and not long[name]:
                cause[name] = min(kept, key=lambda other: hashes[other] != hashes[name])  # an equal one, if there is
        return cause
    for name in order:
        cluster = {name}
        while more := {b for a in cluster for b in order if (a, b) in near} - cluster:
            cluster |= more
        best = min(cluster, key=order.index)
        if len({hashes[one] for one in cluster}) > 1 and name != best and not long[name]:
            cause[name] = best
    return cause


@st.composite
def corpora(draw: st.DrawFn) -> list[dict[str, Any]]:
    dice = random.Random(draw(st.integers(0, 10**9)))
    texts: list[list[str]] = []
    for _ in range(draw(st.integers(0, 14))):
        words = list(dice.choice(texts)) if texts and dice.random() < 0.8 else \
            [dice.choice(WORDS) for _ in range(dice.choice([0, 1, 3, 60, 90]))]
        for _ in range(dice.choice([0, 0, 1, 1, 2])):
            words.insert(dice.randint(0, len(words)), dice.choice(WORDS))
        texts.append(words)
    names = [f"d{number:02d}" for number in range(len(texts))]
    dice.shuffle(names)
    return [document(name, " ".join(words), dice.choice("xyz"), language=dice.choice(["en", "en", "fr", None]),
                     verdict="word_count" if dice.random() < 0.1 else None)
            for name, words in zip(names, texts, strict=True)]


@pytest.mark.parametrize("as_published", [False, True])
@given(corpora(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99), st.sampled_from([2, 4, 7]))
@settings(max_examples=200, deadline=None)
def test_same_as_brute_force(as_published: bool, rows: list[dict[str, Any]], shards: int, partitions: int, seed: int,
                             distance: int) -> None:
    stage = SimHashDuplicates(distance=distance, blocks=distance + 2, long_characters=500, as_published=as_published,
                              prefer=("y", "x"))
    outcome = run(stage, rows, shards, partitions, seed, batch_rows=3)
    cause = brute_force(rows, stage)
    for row, before in zip(outcome.rows, rows, strict=True):
        expected = (before["verdict"], None) if before["verdict"] else \
            ("simhash_duplicates", cause[row["id"]]) if row["id"] in cause else (None, None)
        assert (row["verdict"], row["cause"]) == expected


def pairs_of(outcome: Outcome, names: dict[str, str]) -> set[tuple[str, ...]]:
    return {(*sorted((names[row["other"]], names[row["id"]])), row["distance"])
            for row in outcome.findings[-1].to_pylist() if row["other"] is not None and row["distance"] > 0}


@pytest.mark.shared
def test_pairs_of_the_original_code(shared: Path) -> None:
    folder = shared / "golden" / "roots"
    matches = [json.loads(line) for line in (folder / "simhash_matches.jsonl").read_text("utf-8").splitlines()]
    assert len(matches) == 4
    for match in matches:
        lines = (folder / f"{match['set']}.jsonl").read_text("utf-8").splitlines()
        language = "en" if match["tokenization"] == "space" else "fr"
        rows = [json.loads(line) for line in lines]
        names = {f"d{number}": row[match["tokenization"]] for number, row in enumerate(rows)}
        documents = [document(f"d{number}", row["text"], language=language) for number, row in enumerate(rows)]
        stage = SimHashDuplicates(distance=match["hamming_distance"], blocks=match["num_blocks"], as_published=True)
        expected = {(*sorted(pair[:2]), pair[2]) for pair in match["find_all"]}
        assert pairs_of(run(stage, documents, 3, 2, 0), names) == expected


def test_faults_of_the_published_code() -> None:
    text = " ".join(f"w{k}" for k in range(60))
    equal = [document("a", text), document("b", text), document("c", "abc"), document("d", "xyz")]
    assert run(SimHashDuplicates(), equal).dropped() == {"b": "a"}
    # Equal hashes are no pair, and short texts all have the hash 0 without being one.
    assert run(SimHashDuplicates(as_published=True), equal).dropped() == {}


def test_long_documents_stay() -> None:
    text = " ".join(f"w{k}" for k in range(2000))
    rows = [document("a", text[:5990]), document("b", text[:6001]), document("c", text[:6002])]
    assert run(SimHashDuplicates(), rows).kept() == {"b", "c"}


@pytest.mark.parametrize("change", [{"blocks": 4}, {"window": 0}, {"distance": -1}])
def test_impossible_settings(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"blocks|window"):
        SimHashDuplicates(**change)
