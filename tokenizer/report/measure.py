"""How a tokenizer does on the text that a count table stands for, by language.

A word is a piece with a letter, a mark or a digit. Fertility is tokens of words per word (Rust et al. 2021); a split
word has more than one token. Rényi efficiency is the Rényi entropy of order 2.5 of the tokens' frequencies over the
logarithm of the vocabulary size (Zouhar et al. 2023, section 4): low if few tokens do most of the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import text_buffers
from tokenizer.encode import Encoder

ORDER = 2.5
_LETTER = r"[\p{L}\p{M}\p{N}]"


@dataclass(slots=True)
class Measured:
    """Sums over the text of one language, and what follows from them."""

    bytes: int = 0
    tokens: int = 0
    words: int = 0
    word_tokens: int = 0
    split_words: int = 0
    renyi_efficiency: float = 0.0

    @property
    def fertility(self) -> float:
        """Tokens per word; 0 without words."""
        return self.word_tokens / self.words if self.words else 0.0

    @property
    def bytes_per_token(self) -> float:
        """Bytes of text per token; 0 without text."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def split_share(self) -> float:
        """Share of the words that have more than one token."""
        return self.split_words / self.words if self.words else 0.0

    def facts(self) -> dict[str, Any]:
        """All of it, rounded for a report."""
        return {
            "bytes": self.bytes, "tokens": self.tokens, "words": self.words,
            "fertility": round(self.fertility, 4), "bytes_per_token": round(self.bytes_per_token, 4),
            "split_words": round(self.split_share, 4), "renyi_efficiency": round(self.renyi_efficiency, 4),
        }  # fmt: skip


@dataclass(slots=True)
class Measurement:
    """Languages in order of their names, all of them together, and how often each token was used."""

    languages: dict[str, Measured]
    total: Measured
    usage: npt.NDArray[np.int64] = field(repr=False)


def measure(slices: Iterable[pa.Table], encoder: Encoder) -> Measurement:
    """Encode every piece of a sorted count table once and add up, weighted by counts."""
    size = encoder.vocab_size
    languages: dict[str, Measured] = {}
    usage, own = np.zeros(size, np.int64), np.zeros(size, np.int64)
    current = ""
    for part in slices:
        for language, rows in _runs(part):
            if language != current:
                _close(languages.get(current), own, usage, size)
                current = language
            _add(languages.setdefault(language, Measured()), rows, encoder, own)
    _close(languages.get(current), own, usage, size)
    total = Measured(*(sum(getattr(one, name) for one in languages.values()) for name in _SUMS))
    total.renyi_efficiency = renyi_efficiency(usage, size)
    return Measurement(languages, total, usage)


def renyi_efficiency(usage: npt.NDArray[np.int64], size: int) -> float:
    """H_2.5 of the frequencies / log(size), 0 without tokens."""
    used = usage[usage > 0].astype(np.float64)
    if not len(used) or size < 2:
        return 0.0
    shares = used / used.sum()
    return float(np.log(np.sum(shares**ORDER)) / (1 - ORDER) / np.log(size))


_SUMS = ("bytes", "tokens", "words", "word_tokens", "split_words")


def _runs(part: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    names = part["language"].combine_chunks().dictionary_encode()
    numbers = names.indices.to_numpy()
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(part)]
    for start, stop in pairwise(bounds):
        if stop > start:
            yield names.dictionary[int(numbers[start])].as_py(), part.slice(start, stop - start)


def _add(into: Measured, rows: pa.Table, encoder: Encoder, usage: npt.NDArray[np.int64]) -> None:
    pieces = pc.cast(rows["piece"], pa.large_binary()).combine_chunks()
    counts = rows["count"].to_numpy()
    ids, lengths = encoder.encode_pieces(pieces)
    # Counts may hold bytes that are no UTF-8; seen as text unchecked they are simply no letters.
    words = pc.match_substring_regex(pieces.view(pa.large_string()), _LETTER).to_numpy(zero_copy_only=False)
    np.add.at(usage, ids, np.repeat(counts, lengths))
    into.bytes += int(counts @ np.diff(text_buffers(pieces)[1]))
    into.tokens += int(counts @ lengths)
    into.words += int(counts[words].sum())
    into.word_tokens += int(counts[words] @ lengths[words])
    into.split_words += int(counts[words & (lengths > 1)].sum())


def _close(
    measured: Measured | None, own: npt.NDArray[np.int64], usage: npt.NDArray[np.int64], size: int
) -> None:
    if measured is not None:
        measured.renyi_efficiency = renyi_efficiency(own, size)
        usage += own
        own[:] = 0
