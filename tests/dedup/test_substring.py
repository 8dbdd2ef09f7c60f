"""Repeated passages against brute force: every window, any shards, partitions and order; and old faults of others."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.dedup.substring import RepeatedPassages
from tests.dedup.driver import document, run


def brute_force(rows: list[dict[str, Any]], stage: RepeatedPassages) -> dict[str, set[int]]:
    """The bytes of each document that lie in a window that occurs before (or, for all copies, elsewhere)."""
    place = {name: rank for rank, name in enumerate(stage.prefer)}
    order = sorted((row for row in rows if row.get("verdict") is None),
                   key=lambda row: (place.get(row["source"], len(place)), row["id"]))
    places: dict[bytes, list[tuple[str, int]]] = defaultdict(list)
    for row in order:
        text = row["text"].encode()
        for at in range(len(text) - stage.passage_bytes + 1):
            places[text[at : at + stage.passage_bytes]].append((row["id"], at))
    covered: dict[str, set[int]] = {row["id"]: set() for row in rows}
    for found in places.values():
        if len(found) > 1:
            for name, at in found[stage.keep == "first" :]:
                covered[name].update(range(at, at + stage.passage_bytes))
    return covered


def without(text: str, covered: set[int]) -> str:
    """The text without the characters of which all bytes are covered, but for characters at the ends of a stretch."""
    left, at = "", 0
    for character in text:
        size = len(character.encode())
        if not all(k in covered for k in range(at, at + size)):
            left += character
        at += size
    return left


KINDS = ["small", "unary", "periodic", "blocks", "characters", "equal", "overlapping", "one byte apart"]


def texts_of(kind: str, dice: random.Random) -> list[str]:
    """A few texts with repetitions of one kind."""
    alphabet = {"characters": "aé日😀", "unary": "a"}.get(kind, "ab")

    def fill(most: int) -> str:
        return "".join(dice.choice(alphabet) for _ in range(dice.randint(0, most)))

    count = dice.randint(0, 7)
    if kind == "periodic":
        units = [fill(9) or "ab" for _ in range(2)]
        return [fill(5) + dice.choice(units) * dice.randint(0, 30) + fill(5) for _ in range(count)]
    if kind in ("blocks", "characters"):
        blocks = [fill(50) for _ in range(3)]
        return ["".join(fill(25) + dice.choice(blocks) for _ in range(dice.randint(0, 4))) for _ in range(count)]
    if kind == "equal":
        return [fill(80)] * count + [fill(80)]
    if kind == "one byte apart":
        text = fill(60) or "ab"
        return [text[:at] + "c" + text[at + 1 :] for at in (dice.randrange(len(text)) for _ in range(count))] + [text]
    if kind == "overlapping":
        texts = []
        for _ in range(count):
            text = fill(12) or "a"
            while len(text) < 80:  # copies of what is a little earlier, running into themselves
                back = dice.randint(1, len(text))
                for _ in range(dice.randint(1, 30)):
                    text += text[-back]
                text += fill(3)
            texts.append(text)
        return texts
    return [fill(90) for _ in range(count)]


@given(st.sampled_from(KINDS), st.integers(0, 10**9), st.integers(2, 24), st.sampled_from(["first", "none"]),
       st.sampled_from([1, 2, 1 << 16]))
@settings(max_examples=250, deadline=None)
def test_cuts_are_those_of_brute_force(kind: str, seed: int, length: int, keep: Any, split_above: int) -> None:
    dice = random.Random(seed)
    rows = [document(f"d{dice.randrange(10**6):06d}", text, dice.choice("xyz"),
                     verdict="word_count" if dice.random() < 0.1 else None)
            for text in texts_of(kind, dice)]
    if len({row["id"] for row in rows}) < len(rows):
        return
    stage = RepeatedPassages(length, keep, 0, split_above, prefer=("y", "x"))
    outcome = run(stage, rows, dice.randint(1, 4), dice.randint(1, 3), seed, batch_rows=3)
    covered = brute_force(rows, stage)
    for before, after in zip(rows, outcome.rows, strict=True):
        left = without(before["text"], covered[before["id"]])
        assert after["text"] == left
        assert after["cut_bytes"] == len(before["text"].encode()) - len(left.encode())
        gone = after["cut_bytes"] > 0 and not left.strip()
        assert after["verdict"] == (before["verdict"] or ("repeated_passages" if gone else None))
        assert (after["cause"] is not None) == gone


def prose(dice: random.Random, words: int) -> str:
    return " ".join(f"w{dice.randrange(10**8)}" for _ in range(words))


def test_first_copy_stays_and_the_rest_goes() -> None:
    dice = random.Random(2)
    shared = prose(dice, 40)
    rows = [document(f"d{k}", f"{prose(dice, 30)} {shared} {prose(dice, 30)}", "old" if k == 2 else "new")
            for k in range(4)]
    outcome = run(RepeatedPassages(prefer=("old",)), rows, 3, 2, 0)
    assert [shared in row["text"] for row in outcome.rows] == [False, False, True, False]
    assert outcome.rows[2]["cut_bytes"] == 0
    assert all(row["verdict"] is None for row in outcome.rows)
    for before, after in zip(rows, outcome.rows, strict=True):
        assert len(before["text"]) == len(after["text"]) + after["cut_bytes"]
    outcome = run(RepeatedPassages(keep="none"), rows, 3, 2, 0)
    assert not any(shared in row["text"] for row in outcome.rows)


def test_what_is_not_repeated_is_not_touched() -> None:
    # Removing the decoded passage from the text by search would also hit a shorter or different occurrence.
    dice = random.Random(3)
    shared = prose(dice, 20)
    rows = [document("a", shared + " end of a"),
            document("b", f"start {shared[:90]} middle {shared} end of b {prose(dice, 9)}")]
    outcome = run(RepeatedPassages(minimum_left=0), rows)
    assert outcome.rows[0]["text"] == rows[0]["text"]
    assert f"start {shared[:90]} middle " in outcome.rows[1]["text"]
    assert shared not in outcome.rows[1]["text"]


def test_what_occurs_once_stays() -> None:
    # A filter that enters the n-grams of a document before it looks them up finds every document repeated.
    dice = random.Random(9)
    rows = [document(f"d{k}", prose(dice, 200)) for k in range(20)]
    outcome = run(RepeatedPassages(20), rows, 2, 2, 0)
    assert [row["text"] for row in outcome.rows] == [row["text"] for row in rows]
    assert all(row["cut_bytes"] == 0 for row in outcome.rows)


def test_spans_end_where_texts_end() -> None:
    # No window reaches over the border of two documents, and no separator is ever part of one.
    half = "0123456789" * 4
    rows = [document("a", "x" + half), document("b", half + "y"), document("c", half + half + "z")]
    texts = [row["text"] for row in run(RepeatedPassages(41, minimum_left=0), rows).rows]
    assert texts[:2] == ["x" + half, half + "y"]
    assert len(texts[2]) < 81  # periodic: its own later copies go


@pytest.mark.parametrize("letter", ["я", "日", "😀"])
def test_characters_stay_whole(letter: str) -> None:
    # Letters that share a lead or trail byte with others: the longest common run of bytes begins and ends inside one.
    other = {"я": "џ", "日": "旦", "😀": "🙀"}[letter]
    dice = random.Random(4)
    middle = "".join(dice.choice("абвгдежзийклмн") for _ in range(80))
    rows = [document("a", prose(dice, 20) + letter + middle + letter),
            document("b", prose(dice, 20) + other + middle + other)]
    after = run(RepeatedPassages(minimum_left=0), rows).rows[1]["text"]
    assert after == rows[1]["text"].replace(middle, "")


def test_documents_of_which_too_little_is_left() -> None:
    dice = random.Random(5)
    long, tail = prose(dice, 60), prose(dice, 40)
    rows = [document("a", long), document("b", long + " " * 50), document("c", long + tail[:199]),
            document("d", long + prose(dice, 40)[:201]), document("e", "tiny")]
    outcome = run(RepeatedPassages(), rows, 2, 1, 0)
    assert outcome.dropped() == {"b": "a", "c": "a"}
    assert run(RepeatedPassages(minimum_left=0), rows).dropped() == {"b": "a"}


def test_a_passage_that_occurs_very_often_travels_once() -> None:
    dice = random.Random(6)
    footer = prose(dice, 60)
    rows = [document(f"d{k:04d}", prose(dice, 20) + footer) for k in range(2000)]
    outcome = run(RepeatedPassages(minimum_left=0), rows, 4, 1, 0)
    assert sum(footer[50:] in row["text"] for row in outcome.rows) == 1
    size = sum(len(row["text"]) for row in rows)
    assert sum(len(piece) for piece in outcome.entries[2].column("bytes").to_pylist()) < 0.6 * size
    assert sum(len(row["text"]) + row["cut_bytes"] for row in outcome.rows) == size


def test_hot_anchors_are_split_and_nothing_changes() -> None:
    dice = random.Random(7)
    rule = "=" * 60
    rows = [document(f"d{k:03d}", prose(dice, 3) + rule + prose(dice, 3)) for k in range(200)]
    whole = run(RepeatedPassages(50, minimum_left=0), rows, 3, 2, 1)
    parts = run(RepeatedPassages(50, minimum_left=0, split_above=10), rows, 3, 2, 1)
    assert [row["text"] for row in parts.rows] == [row["text"] for row in whole.rows]
    assert whole.entries[2].column("split").to_pylist().count(True) == 0
    assert parts.entries[2].column("split").to_pylist().count(True) > 200


def test_shards_partitions_and_order_change_nothing() -> None:
    dice = random.Random(8)
    blocks = [prose(dice, 15) for _ in range(6)]
    rows = [document(f"d{k:02d}", " ".join(prose(dice, 10) + dice.choice(blocks) for _ in range(3)), dice.choice("xy"))
            for k in range(40)]
    stage = RepeatedPassages(prefer=("y",))
    first = run(stage, rows).rows
    for shards, partitions, seed in ((1, 3, 1), (2, 1, 2), (5, 4, 3), (40, 7, 4)):
        assert run(stage, rows, shards, partitions, seed, batch_rows=3).rows == first


@given(st.sampled_from(KINDS), st.integers(0, 10**9), st.integers(2, 16), st.integers(1, 80),
       st.sampled_from([1, 1 << 16]))
@settings(max_examples=200, deadline=None)
def test_no_passage_leaves_the_corpus(kind: str, seed: int, length: int, minimum: int, split_above: int) -> None:
    """A document with the first copy of a passage that others lose is not dropped because little of it is left."""
    dice = random.Random(seed)
    rows = [document(f"d{number}", text, dice.choice("xy"), verdict="word_count" if dice.random() < 0.1 else None)
            for number, text in enumerate(texts_of(kind, dice))]
    stage = RepeatedPassages(length, "first", minimum, split_above, prefer=("y",))
    outcome = {row["id"]: row for row in run(stage, rows, dice.randint(1, 4), dice.randint(1, 3), seed).rows}
    covered = brute_force(rows, stage)
    texts = {row["id"]: row["text"].encode() for row in rows if row["verdict"] is None}
    windows = {name: {text[at : at + length] for at in range(len(text) - length + 1)} for name, text in texts.items()}
    for name in texts:
        after = outcome[name]
        assert after["text"] == without(texts[name].decode(), covered[name])
        if after["verdict"] is None:
            continue
        assert after["cut_bytes"] and (not after["text"].strip() or len(after["text"].encode()) < minimum)
        if after["text"].strip():
            whole = {texts[name][at : at + length] for at in range(len(texts[name]) - length + 1)
                     if not covered[name] & set(range(at, at + length))}
            assert not any(whole & windows[other] for other in texts if other != name)


def test_a_short_document_with_a_first_copy_is_kept() -> None:
    dice = random.Random(12)
    long, passage, own = prose(dice, 60), prose(dice, 15)[:120], prose(dice, 15)[:120]
    rows = [document("a", long), document("b", f"{passage} {long}"), document("c", f"{passage} {prose(dice, 60)}"),
            document("d", f"{own} {long}")]
    outcome = run(RepeatedPassages(), rows)
    assert outcome.dropped() == {"d": "a"}
    assert passage in outcome.rows[1]["text"] and passage not in outcome.rows[2]["text"]
