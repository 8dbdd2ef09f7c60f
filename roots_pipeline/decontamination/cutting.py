"""Passages are cut out of texts, with the punctuation that hangs on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.text.contamination_characters import WORD_SIZE, folding
from roots_pipeline.text.contamination_words import read_words

Span = tuple[int, int]

_HANGING = re.compile(r"[^\w\s]+")
_LONGEST_HANGING = 64


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """The same bytes as spans that neither touch nor overlap, in order."""
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def cut(text: bytes, spans: Sequence[Span]) -> bytes:
    """The text without these spans of bytes (at character borders), nor the punctuation right behind each."""
    left: list[bytes] = []
    at = 0
    for start, stop in merge_spans(spans):
        left.append(text[at:start])
        hanging = _HANGING.match(text[stop : stop + _LONGEST_HANGING].decode("utf-8", "ignore"))
        at = max(at, stop + (len(hanging[0].encode()) if hanging else 0))
    return b"".join([*left, text[at:]])


def count_words(texts: Sequence[bytes]) -> list[float]:
    """How many words each text has, as evaluation items are counted."""
    words = read_words(*text_buffers(pa.array(texts, pa.large_binary())), folding())
    bounds = words.first.tolist()
    return [float(words.sizes[a:b].sum(dtype=int)) / WORD_SIZE for a, b in pairwise(bounds)]
