"""What other programs got wrong, for every deduplicating stage: the table is in docs/deduplication.md."""

from __future__ import annotations

import random
from typing import Any

import pytest

from roots_pipeline.core.stages import Exchange
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.lines import RepeatedLines
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.simhash import SimHashDuplicates
from roots_pipeline.dedup.urls import UrlDuplicates
from tests.dedup.driver import document, run

WHOLE: list[Exchange] = [
    ExactDuplicates(), ExactDuplicates(ignore="white_space_digits_punctuation"), UrlDuplicates(),
    MinHashDuplicates(ngram=5), SimHashDuplicates(),
]
LINES: list[Exchange] = [
    RepeatedLines(keep="first", scope="corpus", minimum_times=2),
    RepeatedLines(unit="sentences", run=3, keep="first", scope="corpus", minimum_times=2),
]


def families(count: int, copies: int) -> list[dict[str, Any]]:
    """Texts of distinct words, each in several copies with their own ids and one address."""
    dice = random.Random(3)
    texts = [" ".join("".join(dice.choices("abcdefghij", k=7)) for _ in range(60)) + "." for _ in range(count)]
    rows = [document(f"{copy}-{number:03d}", text, dice.choice("xyz"), url=f"https://e.org/{number}", language="en")
            for number, text in enumerate(texts) for copy in range(copies)]
    dice.shuffle(rows)
    return rows


@pytest.mark.parametrize("stage", WHOLE, ids=lambda stage: stage.name)
def test_each_group_keeps_exactly_one_and_every_drop_names_it(stage: Exchange) -> None:
    rows = families(20, 4)
    outcome = run(stage, rows, 3, 3, 1, batch_rows=7)
    by_id = {row["id"]: row for row in rows}
    assert sorted(by_id[name]["text"] for name in outcome.kept()) == sorted({row["text"] for row in rows})
    assert len(outcome.kept()) + len(outcome.dropped()) == len(rows)
    assert all(cause in outcome.kept() and by_id[cause]["text"] == by_id[name]["text"]
               for name, cause in outcome.dropped().items())


@pytest.mark.parametrize("stage", [*WHOLE, *LINES], ids=lambda stage: stage.name)
def test_nothing_is_dropped_or_cut_that_has_no_twin(stage: Exchange) -> None:
    rows = families(40, 1)
    outcome = run(stage, rows, 2, 2, 1)
    assert len(outcome.kept()) == len(rows)
    assert [row["text"] for row in outcome.rows] == [row["text"] for row in rows]
    assert all(len(table) == 0 for table in outcome.findings)


@pytest.mark.parametrize("stage", [*WHOLE, *LINES], ids=lambda stage: stage.name)
def test_a_stage_carries_nothing_over_to_the_next_corpus(stage: Exchange) -> None:
    rows = families(10, 3)
    first = run(stage, rows, 2, 1, 0).rows
    run(stage, families(12, 2), 1, 1, 0)
    assert run(stage, rows, 2, 1, 0).rows == first


@pytest.mark.parametrize("stage", [*WHOLE, *LINES], ids=lambda stage: stage.name)
def test_giants(stage: Exchange) -> None:
    rows = [document("a", "^" * 3_000_000, url="u"), document("b", "é" * 1_000_000, url="v"),
            document("c", "x. " * 300_000, url="w"), document("d", "", url=" "), document("e", "\n" * 200_000)]
    outcome = run(stage, rows, 2, 2, 0)
    assert {"a", "b"} <= outcome.kept()


def test_only_the_copy_is_cut_and_not_every_equal_string() -> None:
    # A remover that replaces strings also takes the words out of lines that only contain them.
    rows = [document("a", "Home\nWelcome"), document("b", "Home\nHome is where the tent is.\nThe way Home"),
            document("c", "Ho\u0301me\nHome")]
    stage = RepeatedLines(keep="first", scope="corpus", minimum_times=2, minimum_characters=0)
    assert [row["text"] for row in run(stage, rows, 3, 2, 0).rows] == [
        "Home\nWelcome", "Home is where the tent is.\nThe way Home", "Ho\u0301me"]


def test_a_line_that_recurs_in_one_document_alone_is_counted_once_a_time() -> None:
    # A filter that looked lines up after it had put them in found every line twice.
    rows = [document(f"d{number}", f"a line of its own, number {number}") for number in range(30)]
    stage = RepeatedLines(keep="first", scope="corpus", minimum_times=2)
    assert [row["text"] for row in run(stage, rows, 2, 2, 0).rows] == [row["text"] for row in rows]
    poem = document("p", "\n".join(["and so say all of us"] * 3))
    assert run(stage, [poem]).rows[0]["text"] == "and so say all of us"
