"""Functions of ROOTS's catalogue cleaning that rewrite texts, by their published names (ROOTS paper, appendix B.3).

    text ──▶ text

`replace_newline_with_space`      every newline becomes a space
`strip_substrings_en_wiktionary`  notices of the English Wiktionary are cut out; their list is in
                                  `rules/data/catalogue.yaml`
`split_sentences_{lang}`          each sentence on a line of its own, so that lines that repeat can be found

The published sentence splitters are four libraries with models to download. Here sentences end where punctuation of
many scripts says so (`text.segments`), in all languages alike; sentences are there only to be compared with each other,
so it is enough that equal texts are split alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import re2

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.catalogue_edit import TextEdit, to_texts
from roots_pipeline.rules.presets import load_data
from roots_pipeline.text.replacing import replace_spans
from roots_pipeline.text.segments import find_segments

_LARGE = 4 << 20  # bytes; larger texts are split into sentences in parts


@dataclass(frozen=True, slots=True)
class ReplaceNewlineWithSpace(TextEdit):
    """Makes one line of each text."""

    name: ClassVar[str] = "replace_newline_with_space"

    def edit(self, text: bytes) -> bytes:
        return text.replace(b"\n", b" ") if b"\n" in text else text


@dataclass(frozen=True, slots=True)
class StripSubstringsEnWiktionary(TextEdit):
    """Cuts notices of the English Wiktionary out."""

    name: ClassVar[str] = "strip_substrings_en_wiktionary"

    def edit(self, text: bytes) -> bytes:
        new, times = _notices().subn(b"", text)
        return bytes(new) if times else text


@dataclass(frozen=True, slots=True)
class SplitSentences(Map):
    """Puts each sentence on a line of its own, without the white space around it; blank lines go."""

    name: ClassVar[str] = "split_sentences"

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text",)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        if np.diff(offsets).max(initial=0) <= _LARGE:
            return with_columns(batch, {"text": _on_lines(data, offsets)})
        rows = pairwise(offsets.tolist())
        return with_columns(batch, {"text": to_texts([_in_parts(data[start:stop].tobytes()) for start, stop in rows])})


def _in_parts(text: bytes) -> bytes:
    """One text, in parts that end at newlines, which end sentences, too: what is noted of a sentence takes room."""
    start, parts = 0, []
    while start < len(text):
        stop = text.find(b"\n", start + _LARGE) + 1 or len(text)
        part = np.frombuffer(text[start:stop], np.uint8)
        parts.append(_on_lines(part, np.array([0, len(part)], np.int64))[0].as_buffer().to_pybytes())
        start = stop
    return b"\n".join(filter(None, parts))


def _on_lines(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """The texts with newlines between sentences, and nothing else around them."""
    found = find_segments(data, offsets, sentences=True, enough=1)
    first = np.diff(found.text, prepend=-1) != 0
    last = np.diff(found.text, append=-1) != 0
    without = np.setdiff1d(np.arange(len(offsets) - 1), found.text)
    # Between two sentences comes a newline; what lies before the first and behind the last one goes.
    start = np.concatenate(
        [np.where(first, offsets[found.text], np.roll(found.stop, 1)), found.stop[last], offsets[without]]
    )
    stop = np.concatenate([found.start, offsets[found.text[last] + 1], offsets[without + 1]])
    newline = np.concatenate([~first, np.zeros(len(start) - len(first), np.bool_)])
    wanted = np.flatnonzero(newline | (start < stop))
    order = wanted[np.lexsort((stop[wanted], start[wanted]))]
    return replace_spans(
        data, offsets, start[order], stop[order], newline[order].astype(np.uint8), [b"", b"\n"]
    )


@lru_cache(maxsize=1)
def _notices() -> Any:
    return re2.compile("|".join(map(re2.escape, load_data("catalogue")["strip_substrings_en_wiktionary"])))
