"""The datatrove convention against datatrove's own functions, value by value."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.text.characters import character_classes
from roots_pipeline.text.datatrove_convention import measure_as_datatrove
from roots_pipeline.text.measures import MEASURES
from roots_pipeline.text.stop_words import stop_words
from tests.text.twins import buffers

quality = pytest.importorskip("datatrove.pipeline.filters.gopher_quality_filter")
repetition = pytest.importorskip("datatrove.pipeline.filters.gopher_repetition_filter")
pytestmark = pytest.mark.peers

PLAIN = "a b ab abc the and - • ... … .. # x. é 你好 । one"
ODD = "\x00|\x0b|\x1c|\x85|\u2028|\u3000| |  |\t|\n|\n\n|\r\n|\r| \n \n|one two three four five six"
PIECES = [*PLAIN.split(), *ODD.split("|")]
texts = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=80).map("".join)
texts |= st.lists(st.sampled_from(PIECES), max_size=80).map(" ".join)


def expected(text: str) -> list[float]:
    words = text.split()
    content = [word for word in words if any(c not in quality.PUNCTUATION_SET for c in word)]
    lines = text.splitlines()
    runs, paragraphs = re.split("\n+", text), re.split("\n{2,}", text.strip())
    copies, inside = repetition.find_duplicates(runs)
    more, more_inside = repetition.find_duplicates(paragraphs)
    size, count, number = max(len(text), 1), max(len(words), 1), max(len(lines), 1)
    grams = [repetition.get_n_grams(words, n) for n in (2, 3, 4)]
    return [
        len(content),
        sum(map(len, content)) / max(len(content), 1),
        text.count("#") / count,
        (text.count("...") + text.count("…")) / count,
        sum(line.lstrip().startswith(("•", "-")) for line in lines) / number,
        sum(line.rstrip().endswith(("...", "…")) for line in lines) / number,
        sum(any(map(str.isalpha, word)) for word in words) / count,
        len(set(quality.STOP_WORDS) & set(words)),
        copies / len(runs),
        inside / size,
        more / len(paragraphs),
        more_inside / size,
        *(repetition.find_top_duplicate(ngrams) / size if ngrams else 0 for ngrams in grams),
        *(repetition.find_all_duplicate(words, n) / size for n in range(5, 11)),
    ]


@settings(max_examples=400, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4))
def test_values_are_those_of_datatrove(batch: list[str]) -> None:
    found = measure_as_datatrove(
        *buffers(batch),
        character_classes("•-", "".join(sorted(quality.PUNCTUATION_SET))),
        np.zeros(len(batch), np.uint8),
        np.zeros(len(batch), np.int64),
        stop_words([[[word] for word in quality.STOP_WORDS]]),
    )
    for text, column in zip(batch, found.T, strict=True):
        assert dict(zip(MEASURES, column, strict=True)) == pytest.approx(
            dict(zip(MEASURES, expected(text), strict=True)), abs=1e-12
        ), text
