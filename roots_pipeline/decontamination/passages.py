"""What a document and an item have in common: two passages with the shared words marked, to be read side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.decontamination.index import Bools
from roots_pipeline.text.contamination_characters import folding
from roots_pipeline.text.contamination_tables import Hashes, window_hashes
from roots_pipeline.text.contamination_words import Words, read_words

_BEFORE, _LENGTH = 160, 900  # bytes shown before the longest shared stretch, and in all


class Part(NamedTuple):
    """A stretch of a text, shared or not."""

    text: str
    shared: bool


class Common(NamedTuple):
    """The part of a document and of an item around their longest shared stretch."""

    document: list[Part]
    item: list[Part]
    share: float  # of the item's words that are shared


class Reading(NamedTuple):
    """A text and its words."""

    text: bytes
    words: Words


def read(text: str) -> Reading:
    """Find the words of a text."""
    data = text.encode()
    return Reading(data, read_words(*text_buffers(pa.array([data], pa.large_binary())), folding()))


def common_passages(document: Reading, item: Reading, ngram: int) -> Common:
    """Words are shared that lie in an n-gram of both; of a shorter item, in a copy of the whole item."""
    size = max(1, min(ngram, len(item.words.hashes)))
    of_document, of_item = window_hashes(document.words.hashes, size), window_hashes(item.words.hashes, size)
    marks = _marks(of_item, of_document, size)
    sizes = item.words.sizes
    share = float(sizes[marks].sum(dtype=np.int64) / max(1, sizes.sum(dtype=np.int64)))
    return Common(_around(document, _marks(of_document, of_item, size)), _around(item, marks), share)


def _marks(own: Hashes, others: Hashes, size: int) -> Bools:
    """Which words of a text with these n-grams lie in one that the other text has, too."""
    if not len(own):
        return np.zeros(0, np.bool_)
    covering = np.zeros(len(own) + size, np.int64)
    begins = np.flatnonzero(np.isin(own, others))
    np.add.at(covering, begins, 1)
    np.add.at(covering, begins + size, -1)
    marks: Bools = np.cumsum(covering[:-1]) > 0
    return marks


def _around(reading: Reading, marks: Bools) -> list[Part]:
    text, words = reading
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]])))
    stretches = [(int(words.starts[a]), int(words.stops[b - 1])) for a, b in edges.reshape(-1, 2).tolist()]
    longest = max(stretches, key=lambda stretch: (stretch[1] - stretch[0], -stretch[0]), default=(0, 0))
    begin = max(0, longest[0] - _BEFORE)
    end = min(len(text), begin + _LENGTH)
    parts = [Part("…", False)] if begin else []
    at = begin
    for start, stop in stretches:
        start, stop = max(start, begin), min(stop, end)
        if start < stop:
            parts += [_part(text[at:start], False), _part(text[start:stop], True)]
            at = stop
    parts.append(_part(text[at:end], False))
    if end < len(text):
        parts.append(Part("…", False))
    return [part for part in parts if part.text]


def _part(data: bytes, shared: bool) -> Part:
    return Part(data.decode("utf-8", "ignore"), shared)  # the ends of a passage may lie inside a character
