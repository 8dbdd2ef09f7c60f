"""Records of windows: every window in exactly one, equal windows under equal keys, no record too long."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text import windows
from roots_pipeline.text.cutting import cut_spans
from roots_pipeline.text.hashes import hash_spans
from roots_pipeline.text.windows import find_records, hash_anchors, hash_sides
from tests.text.twins import buffers

TEXTS = st.lists(
    st.one_of(st.text(alphabet="ab", max_size=80), st.text(alphabet="aé日😀", max_size=40),
              st.builds(lambda unit, times: unit * times, st.text(alphabet="abc", min_size=1, max_size=7),
                        st.integers(0, 30))),
    max_size=6,
)


def check(texts: list[str], length: int) -> None:
    records = find_records(*buffers(texts), np.ones(len(texts), np.bool_), length)
    seen: list[tuple[int, int]] = []
    keys = defaultdict(set)
    anchors = defaultdict(set)
    for text, start, count, place, periodic, key in zip(*(column.tolist() for column in records), strict=True):
        assert 1 <= count <= length + 1
        if not periodic:  # each window has the anchor
            assert count - 1 <= place <= length - length // 2
        anchors[key].add(texts[text].encode()[start + place :][: length // 2])
        content = [texts[text].encode()[at : at + length] for at in range(start, start + count)]
        assert periodic or len(set(content)) == count
        for window in content:
            assert len(window) == length
            keys[window].add(key)
        seen += [(text, at) for at in range(start, start + count)]
    expected = [(number, at) for number, text in enumerate(texts) for at in range(len(text.encode()) - length + 1)]
    assert seen == expected
    assert all(len(found) == 1 for found in keys.values())
    assert all(len(found) == 1 for found in anchors.values())


@given(TEXTS, st.integers(2, 20))
@settings(max_examples=250, deadline=None)
def test_each_window_is_in_one_record_and_equal_windows_share_a_key(texts: list[str], length: int) -> None:
    check(texts, length)


@pytest.mark.parametrize("text", ["a" * 40_000, "ab" * 20_000, "x" * 16_000 + "".join(map(chr, range(97, 123))) * 400])
def test_blocks(text: str) -> None:
    check([text, text[1:]], 50)
    records = find_records(*buffers([text]), np.ones(1, np.bool_), 50)
    assert len(records.key) < 6 * len(text) / 50 + 20


def test_number_of_records_in_ordinary_text() -> None:
    dice = random.Random(1)
    text = "".join(dice.choice("abcdefghijklmnop ") for _ in range(200_000))
    records = find_records(*buffers([text]), np.ones(1, np.bool_), 100)
    assert 0.9 < len(records.key) / (2 / 52 * len(text)) < 1.1
    assert not records.periodic.any()
    assert len(records.key) > windows.BLOCK / 100


@given(TEXTS, st.integers(2, 20))
@settings(max_examples=200, deadline=None)
def test_records_with_a_common_window_agree_on_one_side_of_their_anchor(texts: list[str], length: int) -> None:
    data, offsets = buffers(texts)
    records = find_records(data, offsets, np.ones(len(texts), np.bool_), length)
    begin = offsets[records.text] + records.start
    assert (hash_anchors(data, begin + records.place, length) == records.key).all()
    sides = hash_sides(data, begin, begin + records.windows + length - 1, records.place, length)
    having: dict[bytes, list[int]] = defaultdict(list)
    for number in np.flatnonzero(~records.periodic).tolist():
        for at in range(begin[number], begin[number] + records.windows[number]):
            having[data[at : at + length].tobytes()].append(number)
    for numbers in having.values():
        for other in numbers[1:]:
            assert any(side[numbers[0]] == side[other] > 0 for side in sides)


@given(st.lists(st.text(alphabet="ab日", max_size=30), max_size=8))
@settings(max_examples=100, deadline=None)
def test_span_hashes(texts: list[str]) -> None:
    data, offsets = buffers(texts)
    first, second = hash_spans(data, offsets[:-1], offsets[1:])
    for hashes in (first.tolist(), second.tolist()):
        assert len(set(zip(hashes, texts, strict=True))) == len(set(texts)) == len(set(hashes))


@st.composite
def texts_and_spans(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int, int]]]:
    texts = draw(st.lists(st.text(alphabet="aé日😀", max_size=12), min_size=1, max_size=4))
    spans = []
    for _ in range(draw(st.integers(0, 6))):
        text = draw(st.integers(0, len(texts) - 1))
        start = draw(st.integers(0, len(texts[text].encode())))
        spans.append((text, start, draw(st.integers(start, len(texts[text].encode())))))
    return texts, sorted(spans)


@given(texts_and_spans())
@settings(max_examples=300, deadline=None)
def test_cutting(case: tuple[list[str], list[tuple[int, int, int]]]) -> None:
    texts, spans = case
    columns = np.array(spans, np.int64).reshape(-1, 3)
    result, cut = cut_spans(*buffers(texts), *columns.T)
    result.validate(full=True)
    for number, text in enumerate(texts):
        inside = {at for which, start, stop in spans if which == number for at in range(start, stop)}
        at, left = 0, ""
        for character in text:
            size = len(character.encode())
            if not all(k in inside for k in range(at, at + size)):
                left += character
            at += size
        assert result[number].as_py() == left
        assert cut[number] == len(text.encode()) - len(left.encode())
