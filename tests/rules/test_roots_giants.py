"""Huge, monotonous and odd documents: right where plain Python can say so, in bounded time and memory everywhere."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from roots_pipeline.rules.roots_measures import MEASURES, RootsMeasures
from roots_pipeline.rules.roots_modify import RootsModify
from roots_pipeline.text.roots_ngrams import BLOCK
from roots_pipeline.text.roots_repetition import LARGEST_PART, MOST
from tests.rules import roots_twin as twin
from tests.rules.corpora import batch_of

SIZE = 100_000_000  # bytes


def measured(text: str, language: str = "en") -> dict[str, float]:
    row: dict[str, float] = RootsMeasures(as_published=True)(batch_of(text, language=language)).to_pylist()[0]
    return {name: row[name] for name in MEASURES if name != "flagged_word_ratio"}


def expected(text: str, language: str = "en") -> dict[str, float]:
    found = twin.measures(text, language, twin.built_in_stop_words(language), None)
    return {name: value for name, value in found.items() if value is not None}


def random_words(size: int, vocabulary: int, seed: int) -> str:
    """A text of about so many bytes, of words that differ in how common they are."""
    source = random.Random(seed)
    words = ["".join(source.choices("abcdefghéя中", k=source.randint(1, 8))) for _ in range(vocabulary)]
    return " ".join(words[int(vocabulary * source.random() ** 3)] for _ in range(size // 6))


@pytest.mark.parametrize("extra", [-1, 0, 1, 7, 8, 9, 4096])
def test_around_the_edge_of_a_block(extra: int) -> None:
    text = ("the cat and a dog. " * (BLOCK // 19 + 1))[: BLOCK - 8 + extra]
    assert measured(text) == expected(text)


@pytest.mark.parametrize("language", ["en", "vi", "zh"])
def test_several_blocks(language: str) -> None:
    text = random_words(2 * BLOCK + 9_999, 5_000, 1)
    assert measured(text, language) == expected(text, language)


def test_several_parts() -> None:
    """More n-grams than a table takes at once, most of them twice: as a whole they repeat and are unlike others."""
    half = "".join(map(chr, np.random.default_rng(1).integers(0x4E00, 0x9FFF, LARGEST_PART * 9 // 8).tolist()))
    found = measured(half + half)
    size, different = 2 * len(half) - 9, len(half)
    assert found["character_repetition_ratio"] == 2 * math.isqrt(different) / size


def test_counts_far_above_those_that_are_told_apart() -> None:
    """With few different n-grams the k largest are some of many that occur very often."""
    text = "".join("ab"[k % 7 % 2] * (k % 5 + 1) for k in range(40 * MOST))
    assert measured(text) == expected(text)
    assert measured(text, "zh") == expected(text, "zh")


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n\t", "\x00", "\x00" * 50, "\u200f\u202e" * 40, "a" + "\u0301" * 5_000, "e\u0301" * 900, "Σ" * 5_000,
     "a" + ".Σ" * 5_000, "İ" * 700, "\ufeff", "\u2028" * 30, "🙂" * 300, "x" * 5_000, "ab " * 2_000, "\r" * 70]
)  # fmt: skip
def test_odd_documents_as_in_plain_python(text: str) -> None:
    for language in ("en", "zh", "vi"):
        assert measured(text, language) == expected(text, language)
        (modified,) = RootsModify(as_published=True)(batch_of(text, language=language)).column("text").to_pylist()
        assert modified == twin.modify(text, language)


def test_one_line_of_one_character() -> None:
    found = measured("x" * SIZE)
    assert found == {
        "number_of_words": 1, "character_repetition_ratio": 1, "word_repetition_ratio": 0,
        "special_character_ratio": 0, "stop_word_ratio": 0,
    }  # fmt: skip


def test_modified_giants() -> None:
    stage = RootsModify()
    texts = ["x" * SIZE, " " * SIZE, "ab\n" * 10_000_000, "http://" * 10_000_000]
    out = stage(batch_of(*texts)).column("text").to_pylist()
    assert out == ["", "", texts[2].strip(), ""]


def test_memory_of_a_giant(project: Path) -> None:
    """Ten million different n-grams: what is needed beyond the document itself stays small."""
    script = (
        "import resource, numpy as np, pyarrow as pa\n"
        "from roots_pipeline.rules.roots_measures import RootsMeasures\n"
        "stage = RootsMeasures()\n"
        "numbers = np.random.default_rng(0).integers(97, 123, 10_000_000, dtype=np.uint8)\n"
        "numbers[::7] = 32\n"
        "offsets = pa.py_buffer(np.array([0, len(numbers)], np.int64))\n"
        "text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(numbers)])\n"
        "batch = pa.RecordBatch.from_arrays([text, pa.array(['en'])], ['text', 'language'])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert stage(batch).column('number_of_words')[0].as_py() > 1_400_000\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 400
