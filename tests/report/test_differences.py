"""Two texts laid over each other: nothing is lost, and cuts are found wherever they were made."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roots_pipeline.report.differences import Piece, around_cuts, compare, cuts_between
from roots_pipeline.report.drawing_lots import Lots


@given(st.text(max_size=300), st.text(max_size=300))
def test_pieces_give_both_texts_back(left: str, right: str) -> None:
    shown = compare(left, right, words=400)
    assert ["".join(piece.text for piece in pieces) for pieces in shown] == [left, right]
    same = ["".join(piece.text for piece in pieces if piece.kind == "same") for pieces in shown]
    assert same[0] == same[1]


def test_one_word_differs() -> None:
    left, right = compare("the old mill stood here", "the new mill stood here")
    assert left[1] == Piece("old", "own") and right[1] == Piece("new", "own")
    assert compare("水磨坊", "风磨坊")[1][0] == Piece("风", "own")


def test_long_texts_are_cut_and_say_so() -> None:
    left, _ = compare("word " * 1_000_000, "x", words=10)
    assert sum(len(piece.text) for piece in left) <= 200 and left[-1] == Piece("…", "left out")


@pytest.mark.parametrize("seed", range(40))
def test_what_was_cut_is_found(seed: int) -> None:
    dice = random.Random(seed)
    original = "".join(dice.choices("abcdefgh ü漢\n", k=3000))
    spots = sorted(dice.sample(range(0, 3000, 100), dice.randint(1, 8)))
    left = original
    for spot in reversed(spots):
        left = left[:spot] + left[spot + dice.randint(1, 60) :]
    cuts = cuts_between(original, left)
    assert cuts is not None
    rebuilt, at = "", 0
    for begin, end in cuts:
        assert at <= begin < end
        rebuilt, at = rebuilt + original[at:begin], end
    assert rebuilt + original[at:] == left


def test_other_changes_are_no_cuts() -> None:
    assert cuts_between("a lower case text", "A lower case text") is None
    assert cuts_between("short", "longer than that") is None
    assert cuts_between("equal", "equal") == [] and cuts_between("all of it", "") == [(0, 9)]


def test_what_is_shown_around_cuts() -> None:
    original = "a" * 1000 + "B" * 1000 + "c" * 1000
    pieces = around_cuts(original, [(1000, 2000)], context=100)
    assert [(piece.kind, piece.text[:1], len(piece.text)) for piece in pieces] == [
        ("left out", "…", 1), ("same", "a", 100), ("cut", "B", 200), ("left out", "…", 1), ("cut", "B", 200),
        ("same", "c", 100), ("left out", "…", 1)]


@given(st.lists(st.text(max_size=3), max_size=60), st.integers(1, 5))
def test_a_draw_depends_on_names_alone_and_counts_all_of_them(names: list[str], most: int) -> None:
    def draw(order: list[str]) -> dict[str, int]:
        lots: Lots[int] = Lots(most)
        for name in order:
            if lots.takes(name):
                lots.put(name, lots.drawn.get(name, 0) + 1)
        return lots.drawn

    drawn = draw(names)
    assert drawn == draw(names[::-1]) and len(drawn) == min(most, len(set(names)))
    assert all(number == names.count(name) for name, number in drawn.items())
