"""The kernel of code measures beside plain Python, on sample files and on any text."""

from __future__ import annotations

import math
import re
import statistics
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.text.code_measures import CODE_MEASURES, ENCODED_RUN, measure_code

PIECES = [
    "x", "é", "中", "٣", "_", "0x1F", "12", " ", "  ", "\t", "\n", "\r\n", "\u2028", "(", ")", "# ", "//", "/*", "*",
    "--", ";", "-", "/", "%", "aB3" * 30, "Ab1/+" * 13, "ab1" * 30, "a" * 1001,
]  # fmt: skip
BEGINS_COMMENT = re.compile(r"\s*(?:[#*;%]|/\s*/|/\s*\*|-\s*-)")


def twin(text: str) -> list[float]:
    """The measures as their documentation has them, in plain Python."""
    lines = text.split("\n")
    count = len(lines) - (text.endswith("\n"))
    tokens = [len(token) for token in text.split()]
    words = re.findall(r"\w+", text)
    runs = [run for run in re.findall(r"[A-Za-z0-9+/_-]+", text)
            if len(run) >= ENCODED_RUN and all(re.search(kind, run) for kind in ("[A-Z]", "[a-z]", "[0-9]"))]
    code = [line for line in lines if line.strip() and not BEGINS_COMMENT.match(line)]
    size = max(1, len(text))
    return [
        len(text),
        max(map(len, lines)),
        statistics.pstdev(tokens) if tokens else 0.0,
        len(re.findall(r"[^\w]", text)) / size,
        len(text) / max(1, count),
        sum(map(str.isspace, text)) / size,
        sum(len(word) for word in words if word[0] in "0123456789") / max(1, sum(map(len, words))),
        sum(map(len, runs)) / size,
        sum("(" in line for line in code) / len(code) if code else math.nan,
    ]


def measured(*texts: str) -> np.ndarray:
    return measure_code(*text_buffers(pa.array(texts, pa.large_string()))).T


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=30).map("".join))
@example("")
@example("\n")
@example("a\n")
@example("\n\n(")
def test_as_plain_python_has_it(text: str) -> None:
    before, found, after = measured("aB3" * 30, text, "(")
    assert found == pytest.approx(twin(text), abs=1e-6, nan_ok=True)
    assert before == pytest.approx(twin("aB3" * 30)) and after == pytest.approx(twin("("))


def test_sample_files(sample: Path) -> None:
    texts = [path.read_bytes().decode() for path in sorted((sample / "code").rglob("*.*"))]
    for text, found in zip(texts, measured(*texts), strict=True):
        assert found == pytest.approx(twin(text), abs=1e-9)


def test_no_texts() -> None:
    assert measure_code(*text_buffers(pa.array([], pa.large_string()))).shape == (len(CODE_MEASURES), 0)


def test_sums_of_a_giant_are_exact() -> None:
    found = measured("x" * 3_000_000 + "\n" + "y " * 500_000)[0]
    assert found[0] == 4_000_001 and found[1] == 3_000_000
    assert found[2] == pytest.approx(statistics.pstdev([3_000_000, *[1] * 500_000]), rel=1e-9)
