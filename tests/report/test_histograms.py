"""Histograms and examples against a direct computation on the whole table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roots_pipeline.report.examples import PER_KIND, draw_examples
from roots_pipeline.report.facts import Limit
from roots_pipeline.report.histograms import count_measures
from tests.report.synthetic import MEASURES, Row, make_rows, write_corpus

ANY = {("web", "word_count")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Row]]:
    run = tmp_path_factory.mktemp("run")
    rows = make_rows(900, seed=5)
    write_corpus(run, rows)
    return str(run / "corpus"), rows


def test_counts_equal_numpy(corpus: tuple[str, list[Row]]) -> None:
    folder, rows = corpus
    limits = [Limit("word_count", 50, 100_000, None), Limit("word_count", 5, None, "zh")]
    found = {histogram.measure: histogram for histogram in count_measures(folder, limits)}
    assert tuple(found) == MEASURES
    for name, histogram in found.items():
        fates = {"kept": lambda verdict: verdict is None, "here": lambda verdict, name=name: verdict == name,
                 "elsewhere": lambda verdict, name=name: verdict not in (None, name)}
        for fate, belongs in fates.items():
            numbers = np.array([row[name] for row in rows if name in row and belongs(row.get("verdict"))])
            counts = [getattr(split, fate) for split in histogram.bins]
            assert counts == np.histogram(numbers, histogram.edges)[0].tolist()
            assert getattr(histogram.below, fate) == int(np.sum(numbers < histogram.edges[0]))
            assert getattr(histogram.above, fate) == int(np.sum(numbers > histogram.edges[-1]))
            assert getattr(histogram.counted, fate) == len(numbers)
        assert histogram.absent == sum(name not in row for row in rows)
        everything = [row[name] for row in rows if name in row]
        assert (histogram.smallest, histogram.largest) == (min(everything), max(everything))
    assert found["word_count"].limits == tuple(limits) and found["stop_words"].limits == ()
    assert found["word_count"].edges[-1] >= 100_000 * 0.999


def test_odd_values(tmp_path: Path) -> None:
    values = [1.0, None, float("nan"), float("inf"), -float("inf"), 2.0]
    for part, numbers in (("documents", values), ("rejected", [None, None])):
        (tmp_path / part).mkdir()
        rows = len(numbers)
        table = pa.table({
            "id": [str(index) for index in range(rows)], "odd": pa.array(numbers, pa.float64()),
            "none": pa.nulls(rows, pa.float64()), "verdict": pa.nulls(rows, pa.string()),
            "_working": [1.0] * rows, "whole": [7] * rows,
        })
        pq.write_table(table, tmp_path / part / "a.parquet")
    odd, none, whole = count_measures(str(tmp_path), [])
    assert (odd.counted.total, odd.absent, odd.smallest, odd.largest) == (2, 6, 1.0, 2.0)
    assert (none.counted.total, none.absent, none.smallest) == (0, 8, None)
    assert whole.counted.total == 8 and whole.largest == 7


def test_a_corpus_without_files_or_rows(tmp_path: Path) -> None:
    assert count_measures(str(tmp_path), []) == ()
    assert draw_examples(str(tmp_path), ANY) == {}
    write_corpus(tmp_path, [])
    found = count_measures(str(tmp_path / "corpus"), [])
    assert [histogram.counted.total for histogram in found] == [0] * len(MEASURES)
    assert draw_examples(str(tmp_path / "corpus"), ANY) == {}


def test_examples_belong_to_their_kind_and_are_the_same_again(corpus: tuple[str, list[Row]]) -> None:
    folder, rows = corpus
    by_id = {row["id"]: row for row in rows}
    kinds: dict[tuple[str, str], int] = {}
    for row in rows:
        if "verdict" in row:
            kinds[row["source"], row["verdict"]] = kinds.get((row["source"], row["verdict"]), 0) + 1
    found = draw_examples(folder, kinds)
    assert found == draw_examples(folder, kinds)
    some = next(iter(kinds))
    assert draw_examples(folder, {some, ("web", "no such verdict")}).keys() == {some}
    assert {kind: len(examples) for kind, examples in found.items()} == {
        kind: min(PER_KIND, count) for kind, count in kinds.items()}
    for (source, verdict), examples in found.items():
        assert len({example.id for example in examples}) == len(examples)
        for example in examples:
            row = by_id[example.id]
            assert (row["source"], row["verdict"], row["language"], row["text"], row.get("cause")) == (
                source, verdict, example.language, example.text, example.cause)
            assert example.value == row.get(verdict)


def test_examples_are_drawn_fairly(tmp_path: Path) -> None:
    rows = [{"id": str(number), "source": "web", "verdict": "short", "text": ""} for number in range(3000)]
    write_corpus(tmp_path, rows, per_file=1000, per_group=100)
    (examples,) = draw_examples(str(tmp_path / "corpus"), {("web", "short")}).values()
    assert not all(int(example.id) < 1000 for example in examples)


def test_text_that_is_not_utf8_or_not_stored(tmp_path: Path) -> None:
    (tmp_path / "rejected").mkdir()
    broken = pa.array([b"a\xff\xed\xa0\x80", None], pa.large_binary()).view(pa.large_string())
    table = pa.table({"id": ["1", "2"], "source": ["web", "web"], "language": [None, "en"], "verdict": ["x", "x"],
                      "cause": [None, None], "text": broken},
                     schema=pa.schema([("id", pa.string()), ("source", pa.string()), ("language", pa.string()),
                                       ("verdict", pa.string()), ("cause", pa.string()), ("text", pa.large_string())]))
    pq.write_table(table, tmp_path / "rejected" / "a.parquet")
    first, second = draw_examples(str(tmp_path), {("web", "x")})["web", "x"]
    assert first.text == "a" + "\ufffd" * 4 and second.text is None
