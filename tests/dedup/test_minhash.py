"""Near duplicates against brute force, whatever the shards, partitions and order; and what other programs got wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.dedup.minhash import MinHashDuplicates
from tests.dedup.driver import Outcome, document, run
from tests.text.test_ngrams import ngrams

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
# Every band is one number, so a pair of similarity .5 is missed with a chance of 2^-64: recall is not in question.
SURE: dict[str, Any] = {"hashes": 64, "bands": 64, "rows": 1, "ngram": 2, "threshold": 0.5, "doubt": 0.0}


def sets_of(rows: list[dict[str, Any]], stage: MinHashDuplicates) -> dict[str, set[tuple[str, ...]]]:
    unit = 0 if stage.unit == "words" else 1
    short = stage.short == "whole"
    return {row["id"]: set(ngrams(row["text"], unit, stage.ngram, stage.lower_case, short)) for row in rows}


def brute_force(
    rows: list[dict[str, Any]], stage: MinHashDuplicates
) -> tuple[dict[tuple[str, str], float], dict[str, str]]:
    """All pairs (better, worse) that are similar enough, and what each dropped document is dropped for."""
    place = {name: rank for rank, name in enumerate(stage.prefer)}
    order = sorted((row for row in rows if row.get("verdict") is None),
                   key=lambda row: (place.get(row["source"], len(place)), row["id"]))
    sets = sets_of(order, stage)
    pairs: dict[tuple[str, str], float] = {}
    cause: dict[str, str] = {}
    for at, worse in enumerate(order):
        for better in order[:at]:
            a, b = sets[better["id"]], sets[worse["id"]]
            if a and b and len(a & b) / len(a | b) >= stage.threshold:
                pairs[better["id"], worse["id"]] = len(a & b) / len(a | b)
                if better["id"] not in cause:
                    cause.setdefault(worse["id"], better["id"])
    return pairs, cause


def pairs_of(outcome: Outcome) -> dict[tuple[str, str], float]:
    table = outcome.findings[-1].to_pylist()
    return {(row["other"], row["id"]): row["jaccard"] for row in table if row["other"] is not None}


@st.composite
def corpora(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Documents that are edits of each other, in several sources, some of them dropped before."""
    dice = random.Random(draw(st.integers(0, 10**9)))
    texts: list[list[str]] = []
    for _ in range(draw(st.integers(0, 12))):
        words = list(dice.choice(texts)) if texts and dice.random() < 0.7 else \
            [dice.choice(WORDS) for _ in range(dice.randint(0, 9))]
        for _ in range(dice.randint(0, 3)):
            words.insert(dice.randint(0, len(words)), dice.choice(WORDS))
        texts.append(words)
    names = [f"d{number:02d}" for number in range(len(texts))]
    dice.shuffle(names)
    return [document(name, dice.choice([" ", "  ", ", "]).join(words), dice.choice("xyz"),
                     verdict="word_count" if dice.random() < 0.1 else None)
            for name, words in zip(names, texts, strict=True)]


@given(corpora(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99), st.sampled_from(["whole", "keep"]),
       st.sampled_from(["words", "characters"]))
@settings(max_examples=200, deadline=None)
def test_pairs_and_survivors_are_those_of_brute_force(
    rows: list[dict[str, Any]], shards: int, partitions: int, seed: int, short: Any, unit: Any
) -> None:
    stage = MinHashDuplicates(**SURE, short=short, unit=unit, lower_case=seed % 2 == 0, prefer=("y", "x"))
    outcome = run(stage, rows, shards, partitions, seed, batch_rows=3)
    pairs, cause = brute_force(rows, stage)
    assert pairs_of(outcome) == pairs
    for row, before in zip(outcome.rows, rows, strict=True):
        expected = (before["verdict"], None) if before["verdict"] else \
            ("near_duplicates", cause[row["id"]]) if row["id"] in cause else (None, None)
        assert (row["verdict"], row["cause"]) == expected
        assert row["text"] == before["text"]


def edited(dice: random.Random, count: int, families: int, words: int = 120) -> list[dict[str, Any]]:
    """Documents in families: a text of distinct words and copies of it with more or fewer words exchanged."""
    bases = [[f"w{family}n{k}" for k in range(words)] for family in range(families)]
    rows = []
    for number in range(count):
        text = list(bases[number % families])
        for _ in range(dice.choice([0, 0, 1, 2, 4, 8, 16])):
            text[dice.randrange(words)] = f"new{dice.randrange(10**9)}"
        rows.append(document(f"d{number:05d}", " ".join(text)))
    dice.shuffle(rows)
    return rows


@pytest.mark.parametrize("doubt", [0.0, 1e-6])
def test_default_bands_find_nearly_all_and_drop_nothing_wrongly(doubt: float) -> None:
    stage = MinHashDuplicates(ngram=5, doubt=doubt)
    rows = edited(random.Random(5), 300, 30)
    outcome = run(stage, rows, 3, 2, 1)
    pairs, _ = brute_force(rows, stage)
    found = pairs_of(outcome)
    assert set(found) <= set(pairs)
    assert len(found) >= 0.99 * len(pairs) > 100
    for pair, similarity in found.items():
        assert abs(similarity - pairs[pair]) < (1e-12 if doubt == 0 else 0.2)
    for name, cause in outcome.dropped().items():
        assert cause in outcome.kept() and (cause, name) in pairs
    assert len(outcome.kept()) + len(outcome.dropped()) == len(rows)


def test_shards_partitions_and_order_change_nothing() -> None:
    rows = edited(random.Random(6), 120, 6)
    stage = MinHashDuplicates(ngram=5, small_bucket=8, representatives=3)
    first = run(stage, rows)
    for shards, partitions, seed in ((1, 3, 1), (2, 1, 2), (5, 4, 3), (120, 7, 4)):
        other = run(stage, rows, shards, partitions, seed, batch_rows=7)
        assert other.dropped() == first.dropped()
        assert pairs_of(other) == pairs_of(first)


@pytest.mark.parametrize("doubt", [0.0, 1e-6])
def test_a_giant_bucket_costs_no_squares(doubt: float) -> None:
    count, leaders = 3000, 4
    stage = MinHashDuplicates(ngram=5, doubt=doubt, representatives=leaders, small_bucket=16)
    rows = [document(f"d{number:05d}", " ".join(f"w{k}" for k in range(60)) + f" end{number % 2}")
            for number in range(count)]
    outcome = run(stage, rows, 3, 2, 0)
    assert outcome.kept() == {"d00000"}
    assert set(outcome.dropped().values()) == {"d00000"}
    for table in (*outcome.entries[2:], *outcome.findings[1:]):
        assert len(table) <= (2 * stage.comparisons + 2) * count


def test_a_family_of_templates_travels_a_bounded_number_of_times() -> None:
    # In each band other members agree, so each bucket has its own representatives: together they are many.
    dice = random.Random(4)
    rows = []
    for number in range(700):
        words = [f"w{k}" for k in range(100)]
        for _ in range(dice.randint(0, 3)):
            words[dice.randrange(100)] = f"new{dice.randrange(10**9)}"
        rows.append(document(f"d{number:05d}", " ".join(words)))
    stage = MinHashDuplicates(ngram=4, comparisons=10)
    outcome = run(stage, rows, 3, 3, 0)
    assert len(outcome.entries[2]) <= 11 * len(rows)
    assert len(outcome.entries[3]) <= 20 * len(rows)
    assert run(stage, rows, 2, 1, 5).dropped() == outcome.dropped()
    sets = sets_of(rows, stage)
    for name, cause in outcome.dropped().items():
        assert cause in outcome.kept()
        assert len(sets[name] & sets[cause]) / len(sets[name] | sets[cause]) >= 0.8
    exact = brute_force(rows, stage)[1]
    assert len(outcome.dropped()) >= 0.9 * len(exact)


def test_a_chain_does_not_drop_what_resembles_nothing_that_is_left() -> None:
    # A character 5-gram closure once wiped out whole sources: each document resembles the next, the ends share nothing.
    words = [f"w{k}" for k in range(400)]
    rows = [document(f"d{k:03d}", " ".join(words[5 * k : 5 * k + 50])) for k in range(60)]
    stage = MinHashDuplicates(**{**SURE, "threshold": 0.7})
    outcome = run(stage, rows, 2, 2, 0)
    pairs, _ = brute_force(rows, stage)
    assert len(pairs) >= 59
    assert len(outcome.kept()) == 30
    for name, cause in outcome.dropped().items():
        assert cause in outcome.kept() and (cause, name) in pairs


def test_a_cluster_always_keeps_one_and_names_it_across_sources() -> None:
    text = " ".join(f"w{k}" for k in range(40))
    rows = [document("b/2", text, "new"), document("a/1", text, "new"), document("z/9", text, "reference")]
    outcome = run(MinHashDuplicates(prefer=("reference",)), rows, 3, 2, 0)
    assert outcome.kept() == {"z/9"}
    assert outcome.dropped() == {"a/1": "z/9", "b/2": "z/9"}


def test_a_document_without_twin_is_in_no_list() -> None:
    rows = [document(str(number), " ".join(f"w{number}x{k}" for k in range(40))) for number in range(5)]
    outcome = run(MinHashDuplicates(), rows, 2, 2, 0)
    assert len(outcome.kept()) == 5
    assert all(len(table) == 0 for table in outcome.findings)
    assert all(len(table) == 0 for table in outcome.entries[1:])


def test_a_stage_keeps_no_state_between_corpora() -> None:
    stage = MinHashDuplicates(ngram=5)
    rows = edited(random.Random(8), 60, 6)
    first = run(stage, rows)
    run(stage, edited(random.Random(9), 60, 6))
    assert run(stage, rows).rows == first.rows


@pytest.mark.parametrize(("short", "kept"), [("whole", {"a", "c", "d", "e"}), ("keep", {"a", "b", "c", "d", "e"})])
def test_short_documents(short: Any, kept: set[str]) -> None:
    rows = [document("a", "Too short"), document("b", "Too,  short!"), document("c", "too short"), document("d", "..."),
            document("e", "-- !")]
    assert run(MinHashDuplicates(short=short), rows).kept() == kept


def test_advice_on_bands() -> None:
    assert MinHashDuplicates().advice() == []
    swapped = MinHashDuplicates(bands=6, rows=20).advice()
    assert len(swapped) == 1 and "swapped" in swapped[0]
    poor = MinHashDuplicates(threshold=0.5, bands=8, rows=16).advice()
    assert len(poor) == 1 and "find only" in poor[0] and "bands: " in poor[0]
    eager = MinHashDuplicates(bands=64, rows=2).advice()
    assert len(eager) == 1 and "half as similar" in eager[0]
    assert "in no band" in MinHashDuplicates(bands=16, rows=6).advice()[0]


@pytest.mark.parametrize("change", [{"threshold": 0.0}, {"threshold": 1.1}, {"bands": 30, "rows": 5}, {"ngram": 0}])
def test_impossible_settings(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"hashes|threshold|ngram"):
        MinHashDuplicates(**change)
