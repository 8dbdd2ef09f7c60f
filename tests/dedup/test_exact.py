"""Exact duplicates against brute force: one survivor a group, the best-ranked, whatever the order of arrival."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.dedup.exact import ExactDuplicates
from tests.dedup.driver import document, run

TEXTS = st.text(alphabet="ab \n\té日1٣.-。", max_size=4)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["x", "y", "z"])), max_size=30)
LAYOUT = re.compile(r"\s|\d|[" + re.escape(string.punctuation) + "]")


def key_of(text: str, stage: ExactDuplicates) -> str:
    if stage.ignore == "nothing":
        return text
    if stage.ignore == "white_space":
        return "".join(text.split())
    return LAYOUT.sub("", text) or ("" if stage.as_published else text)


@given(ROWS, st.integers(1, 4), st.sampled_from(["nothing", "white_space", "white_space_digits_punctuation"]),
       st.booleans(), st.sampled_from(["", "length", "-length"]), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_against_brute_force(
    texts: list[tuple[str, str]], shards: int, ignore: Any, as_published: bool, measure: str, seed: int
) -> None:
    rows = [document(f"d{n:02d}", text, source) for n, (text, source) in enumerate(texts)]
    stage = ExactDuplicates(ignore=ignore, as_published=as_published, prefer=("y", "x"), measure=measure)
    outcome = run(stage, rows, shards, 2, seed, batch_rows=8)
    sign = {"": 0, "length": -1, "-length": 1}[measure]
    groups: dict[str, list[tuple[int, int, str]]] = {}
    for row in rows:
        rank = (["y", "x", "z"].index(row["source"]), sign * len(row["text"].encode()), row["id"])
        groups.setdefault(key_of(row["text"], stage), []).append(rank)
    wanted = {rank[2]: min(group)[2] for group in groups.values() for rank in group if rank != min(group)}
    assert outcome.dropped() == wanted
    assert len(outcome.kept()) + len(wanted) == len(rows)


def test_documents_dropped_before_do_not_take_part() -> None:
    rows = [document("a", "same", verdict="word_count"), document("b", "same")]
    outcome = run(ExactDuplicates(), rows)
    assert outcome.entries[0].column("row").to_pylist() == [1]
    assert outcome.kept() == {"b"}


@pytest.mark.parametrize(("as_published", "kept"), [(True, {"a", "e"}), (False, {"a", "b", "c", "e"})])
def test_tables_of_numbers_are_not_all_the_same(as_published: bool, kept: set[str]) -> None:
    rows = [document("a", "1 2 3"), document("b", "4-5-6"), document("c", "..."), document("d", "..."),
            document("e", "page 1"), document("f", "page 2")]
    stage = ExactDuplicates(ignore="white_space_digits_punctuation", as_published=as_published)
    assert run(stage, rows, 2, 2, 0).kept() == kept
