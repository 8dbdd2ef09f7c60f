"""Lines and sentences against plain Python."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text.segments import find_segments, runs_of_segments, segment_hashes, without_segments
from tests.text.twins import buffers

CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("aBé. \n\n.!。？”) \r\u3000…")
TEXTS = st.lists(st.text(CHARACTERS, max_size=24), max_size=5)
ENDS = re.compile(r"(?:[.!?…।॥۔؟።။៕。！？｡][.!?…।॥۔؟።။៕。！？｡\"')\]}»”’」』）】›]*)")


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Where sentences without white space around begin and end, in characters."""
    found = []
    for line in re.finditer(r"[^\n]*", text):
        begin = line.start()
        cuts = [m.end() for m in ENDS.finditer(text, line.start(), line.end())
                if m.end() == line.end() or text[m.end()].isspace() or re.search("[。！？｡]", m[0])]
        for cut in [*cuts, line.end()]:
            piece = text[begin:cut]
            if piece.strip():
                start = begin + len(piece) - len(piece.lstrip())
                found.append((start, start + len(piece.strip())))
            begin = cut
    return found


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def segments_of(text: str, sentences: bool) -> list[str]:
    return [text[a:b] for a, b in sentences_of(text)] if sentences else lines_of(text)


@given(TEXTS, st.booleans())
@settings(max_examples=300, deadline=None)
def test_segments(texts: list[str], sentences: bool) -> None:
    data, offsets = buffers(texts)
    found = find_segments(data, offsets, sentences)
    got: list[list[str]] = [[] for _ in texts]
    for text, a, b, size in zip(found.text, found.start, found.stop, found.characters, strict=True):
        piece = bytes(data[a:b]).decode()
        assert len(piece) == size
        got[text].append(piece)
    assert got == [segments_of(text, sentences) for text in texts]


def test_sentences() -> None:
    text = "“Is it 3.14?” Yes… (It is.) No!\nHe said。「そう。」终  x"
    assert segments_of(text, True) == ["“Is it 3.14?”", "Yes…", "(It is.)", "No!", "He said。", "「そう。」", "终  x"]


def lower(text: str) -> str:
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@given(TEXTS, st.booleans(), st.booleans(), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_equal_runs_have_equal_hashes(texts: list[str], sentences: bool, fold: bool, size: int) -> None:
    data, offsets = buffers(texts)
    found = find_segments(data, offsets, sentences)
    begins, (high, low) = runs_of_segments(segment_hashes(data, found, fold), found.text, size)
    pieces = [segments_of(text, sentences) for text in texts]
    wanted = [tuple(lower(one) if fold else one for one in own[k : k + size])
              for own in pieces for k in range(len(own) - size + 1)]
    assert len(begins) == len(wanted)
    keys = list(zip(high.tolist(), low.tolist(), strict=True))
    assert len(set(keys)) == len(set(wanted)) == len(set(zip(keys, wanted, strict=True)))
    assert len(set(high.tolist())) == len(set(low.tolist())) == len(set(wanted))


def without_lines(text: str, cut: list[bool], stripped: bool) -> str:
    lines = [line.strip() if stripped else line for line in text.split("\n")]
    return "\n".join(line for line, goes in zip(lines, cut, strict=True) if not goes)


def without_sentences(text: str, cut: list[bool]) -> str:
    places = sentences_of(text)
    if not any(cut):
        return text
    out, last = "", None
    for number, (a, b) in enumerate(places):
        if cut[number]:
            continue
        if last is None:
            out += text[:a] if number == 0 else ""
        else:
            gap = text[places[number - 1][1] : a]
            passed = "".join(text[places[k][1] : places[k + 1][0]] for k in range(last, number))
            out += "\n" if last < number - 1 and "\n" in passed else gap
        out += text[a:b]
        last = number
    return out + (text[places[-1][1] :] if last == len(places) - 1 else "")


@given(TEXTS, st.sampled_from(["lines", "stripped", "sentences"]), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_texts_without_segments(texts: list[str], how: str, dice: object) -> None:
    data, offsets = buffers(texts)
    found = find_segments(data, offsets, how == "sentences")
    cut = np.array([dice.random() < 0.4 for _ in found.text], bool)  # type: ignore[attr-defined]
    got, lost = without_segments(data, offsets, found, cut, how == "stripped")
    for number, text in enumerate(texts):
        mine = cut[found.text == number].tolist()
        wanted = without_sentences(text, mine) if how == "sentences" else without_lines(text, mine, how == "stripped")
        assert got[number].as_py() == wanted
        assert lost[number] == len(text.encode()) - len(wanted.encode())
