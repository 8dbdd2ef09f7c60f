"""Plain Python that says what the kernels must compute, and ways to call the kernels on Python strings."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.text.characters import UNSPACED_BLOCKS, character_classes
from roots_pipeline.text.measures import MEASURES, measure_quality_and_repetition
from roots_pipeline.text.stop_words import StopWords, stop_words
from roots_pipeline.text.words import CHARACTERS, SPACED

BULLETS = "•-"
STOPS = ("the", "and", "é", "中", "。")


def buffers(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The Arrow buffers of some strings."""
    return text_buffers(pa.array(texts, pa.large_string()))


def measure(
    texts: Sequence[str], setting: int = SPACED, first_copy_too: bool = False, stops: Sequence[str] = STOPS
) -> list[dict[str, float]]:
    """What the kernels say of each text."""
    count = len(texts)
    out = measure_quality_and_repetition(
        *buffers(texts),
        character_classes(BULLETS),
        np.full(count, setting, np.uint8),
        np.zeros(count, np.int64),
        stop_list(stops),
        first_copy_too,
    )
    return [dict(zip(MEASURES, column, strict=True)) for column in out.T.tolist()]


def stop_list(words: Sequence[str]) -> StopWords:
    """One list, every word with its capitalised and upper-case spelling."""
    return stop_words([[sorted({word, word.capitalize(), word.upper()}) for word in words]])


def is_unspaced(character: str) -> bool:
    return character.isalpha() and any(first <= ord(character) <= last for first, last in UNSPACED_BLOCKS)


def words_of(text: str, setting: int) -> list[str]:
    """The words of a text."""
    if setting == SPACED:
        return text.split()
    words: list[str] = []
    for run in text.split():
        alone = new = True
        for character in run:
            if is_unspaced(character):
                words.append(character)
                alone, new = True, False
            elif not new and (not alone or unicodedata.category(character)[0] == "M"):
                words[-1] += character
            else:
                words.append(character)
                alone, new = False, False
    return words


def copies(items: Sequence[Hashable], sizes: Sequence[int], first_too: bool) -> tuple[int, int]:
    """(items that occurred before, their size); with `first_too` all occurrences of repeated items."""
    total, seen = Counter(items), set[Hashable]()
    count = size = 0
    for item, length in zip(items, sizes, strict=True):
        if item in seen or (first_too and total[item] > 1):
            count, size = count + 1, size + length
        seen.add(item)
    return count, size


def covered(words: Sequence[str], n: int, starts: Sequence[int]) -> int:
    """Characters of the words inside n-grams at these positions, each character once."""
    inside = {k for start in starts for k in range(start, start + n)}
    return sum(len(words[k]) for k in inside)


def top_ngram(words: Sequence[str], n: int) -> int:
    """Characters inside the most frequent n-gram that occurs at least twice; the first such if several do."""
    ngrams = [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]
    if not ngrams:
        return 0
    top, count = Counter(ngrams).most_common(1)[0]
    return covered(words, n, [k for k, ngram in enumerate(ngrams) if ngram == top]) if count > 1 else 0


def duplicate_ngrams(words: Sequence[str], n: int, first_too: bool) -> int:
    """Characters inside n-grams that occurred before (with `first_too`: that occur more than once)."""
    ngrams = [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]
    total, seen = Counter(ngrams), set[tuple[str, ...]]()
    starts = []
    for k, ngram in enumerate(ngrams):
        if ngram in seen or (first_too and total[ngram] > 1):
            starts.append(k)
        seen.add(ngram)
    return covered(words, n, starts)


def expected(
    text: str, setting: int = SPACED, first_too: bool = False, stops: Sequence[str] = STOPS
) -> dict[str, float]:
    """The measures of a text, by the book."""
    words = words_of(text, setting)
    lines: list[list[str]] = []
    paragraphs: list[list[list[str]]] = [[]]
    for line in text.split("\n"):
        if own := words_of(line, setting):
            lines.append(own)
            paragraphs[-1].append(own)
        elif paragraphs[-1]:
            paragraphs.append([])
    paragraphs = [paragraph for paragraph in paragraphs if paragraph]
    characters = sum(map(len, words))
    n, c = max(len(words), 1), max(characters, 1)
    line_sizes = [sum(map(len, line)) for line in lines]
    line_copies = copies([tuple(line) for line in lines], line_sizes, first_too)
    paragraph_copies = copies(
        [tuple(map(tuple, paragraph)) for paragraph in paragraphs],
        [sum(len(word) for line in paragraph for word in line) for paragraph in paragraphs],
        first_too,
    )
    values = [
        len(words),
        characters / n,
        text.count("#") / n,
        (text.count("...") + text.count("…")) / n,
        sum(line[0][0] in BULLETS for line in lines) / max(len(lines), 1),
        sum(line[-1].endswith(("...", "…")) for line in lines) / max(len(lines), 1),
        sum(any(map(str.isalpha, word)) for word in words) / n,
        sum(bool({word, word.capitalize(), word.upper()} & set(words)) for word in stops),
        line_copies[0] / max(len(lines), 1),
        line_copies[1] / c,
        paragraph_copies[0] / max(len(paragraphs), 1),
        paragraph_copies[1] / c,
        *(top_ngram(words, k) / c for k in (2, 3, 4)),
        *(duplicate_ngrams(words, k, first_too) / c for k in range(5, 11)),
    ]
    return dict(zip(MEASURES, values, strict=True))


__all__ = ["CHARACTERS", "SPACED", "buffers", "duplicate_ngrams", "expected", "measure", "stop_list", "top_ngram"]
