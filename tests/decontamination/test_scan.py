"""The scan finds exactly what a search word by word finds, over blocks, texts and filters."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.decontamination.index import Matching
from roots_pipeline.decontamination.indexing import build_index
from roots_pipeline.decontamination.items import Item
from roots_pipeline.text.contamination import scan_texts
from roots_pipeline.text.contamination_characters import folding
from tests.decontamination.twins import ends_in_border, words_of


def plain_hits(items: list[str], texts: list[str], matching: Matching) -> set[tuple[int, str, int, int]]:
    """(text, words found, first byte, byte behind the last), by looking at every place."""
    index = build_index([("s", [Item(str(k), item) for k, item in enumerate(items)])], matching)
    words = [[word.text for word in words_of(item)] for item in items]
    grams = {tuple(words[item][at : at + matching.ngram])
             for item in range(len(items)) for at in range(len(words[item]))
             if index.grams_of(item)[at] >= 0}
    shorts = {tuple(words[item]): sum(word.size for word in words_of(items[item])) for item in index.shorts.tolist()}
    hits = set()
    offset = 0
    for number, text in enumerate(texts):
        own = words_of(text)
        names = [word.text for word in own]
        for size in {matching.ngram, *map(len, shorts)}:
            for at in range(len(own) - size + 1):
                gram = tuple(names[at : at + size])
                bounded = own[at].border and ends_in_border(text, own, at + size)
                if (size == matching.ngram and gram in grams) or (
                    gram in shorts and (bounded or shorts[gram] >= matching.short_anywhere)
                ):
                    hits.add((number, " ".join(gram), offset + own[at].start, offset + own[at + size - 1].stop))
        offset += len(text.encode())
    return hits


def kernel_hits(items: list[str], texts: list[str], matching: Matching) -> set[tuple[int, str, int, int]]:
    index = build_index([("s", [Item(str(k), item) for k, item in enumerate(items)])], matching)
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    hits = scan_texts(data, offsets, np.ones(len(texts), np.bool_), folding(), index.tables)
    assert (np.diff(hits[:, 0]) >= 0).all()
    found = set()
    for text, what, start, stop in hits.tolist():
        part = bytes(data[start:stop]).decode()
        words = " ".join(word.text for word in words_of(part))
        found.add((text, words, start, stop))
        if what < 0:
            assert words == " ".join(word.text for word in words_of(items[index.shorts[-1 - what]]))
        else:
            places = np.flatnonzero(index.grams == what)
            item = int(np.searchsorted(index.first, places[0], side="right")) - 1
            own = [word.text for word in words_of(items[item])][places[0] - index.first[item] :]
            assert words == " ".join(own[: matching.ngram])
    assert len(found) == len({(hit[0], hit[2], hit[3]) for hit in found})
    return found


VOCABULARY = ["ampersand", "buttercup", "cathedral", "dragonfly", "elaborate", "你", "好"]
TEXTS = st.lists(st.tuples(st.sampled_from(VOCABULARY), st.sampled_from([" ", " ", ", ", ".\n"])), max_size=25).map(
    lambda pieces: "".join(word + gap for word, gap in pieces)
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TEXTS, min_size=1, max_size=5), st.lists(TEXTS, max_size=4), st.integers(2, 9), st.integers(1, 4),
    st.sampled_from([0.0, 2.0, 4.0, 20.0]), st.data(),
)
def test_hits_are_those_of_a_plain_search(
    items: list[str], texts: list[str], ngram: int, minimum: int, anywhere: float, data: st.DataObject
) -> None:
    for _ in range(data.draw(st.integers(0, 3))):
        texts.insert(data.draw(st.integers(0, len(texts))), data.draw(st.sampled_from(items)) + data.draw(TEXTS))
    matching = Matching(ngram=ngram, common_items=9, short_minimum=float(minimum), short_anywhere=anywhere,
                        anywhere_characters=0)
    assert kernel_hits(items, texts, matching) == plain_hits(items, texts, matching)


@pytest.mark.parametrize("ngram", [5, 13, 40])
def test_blocks_do_not_hide_anything(ngram: int) -> None:
    """Items planted at every place around the ends of blocks of a long text."""
    dice = random.Random(ngram)
    words = [f"word{number}" for number in range(3000)]
    long = [" ".join(f"item{number}x{k}" for k in range(ngram)) for number in range(40)]
    short = [" ".join(f"short{number}x{k}" for k in range(4)) for number in range(40)]
    places = sorted(dice.sample(range(3000), 40) + list(range(480, 520)))
    for place, plant in zip(reversed(places), [*long, *short], strict=True):
        words.insert(place, f".{plant}.")
    text = " ".join(words)
    matching = Matching(ngram=ngram, short_minimum=4, short_anywhere=9, anywhere_characters=0)
    found = kernel_hits([*long, *short], [text, "nothing", text], matching)
    assert len(found) == 160


def test_more_hits_than_there_was_room_for() -> None:
    item = " ".join(f"word{number}" for number in range(20))
    index = build_index([("s", [Item("0", item)])], Matching())
    data, offsets = text_buffers(pa.array([f"{item}. " * 10_000], pa.large_string()))
    hits = scan_texts(data, offsets, np.ones(1, np.bool_), folding(), index.tables)
    assert len(hits) == 80_000
    assert len(np.unique(hits[:, 2])) == 80_000


def test_texts_that_are_not_wanted_are_not_read() -> None:
    item = " ".join(f"word{number}" for number in range(20))
    index = build_index([("s", [Item("0", item)])], Matching())
    data, offsets = text_buffers(pa.array([item] * 3, pa.large_string()))
    hits = scan_texts(data, offsets, np.array([False, True, False]), folding(), index.tables)
    assert set(hits[:, 0].tolist()) == {1}
