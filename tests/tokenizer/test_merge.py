"""Merging sorted tables as streams, against one dictionary."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.tasks import Commit
from tests.tokenizer.test_count import rows_of
from tokenizer import merge
from tokenizer.counts_file import COUNT_SCHEMA, read_counts, sort_counts, write_counts
from tokenizer.merge import merge_counts, merge_shards

Counts = dict[tuple[str, bytes], int]
keys = st.tuples(st.sampled_from(["en", "e", "zh"]), st.binary(max_size=2))
tables = st.lists(st.dictionaries(keys, st.integers(0, 2**50), max_size=12), max_size=5)


def table_of(counts: Counts) -> pa.Table:
    rows = sorted(counts.items())
    columns = [[k[0] for k, _ in rows], ["s"] * len(rows), [k[1] for k, _ in rows], [count for _, count in rows]]
    return pa.table(dict(zip(COUNT_SCHEMA.names, columns, strict=True)), COUNT_SCHEMA)


def in_slices(table: pa.Table, size: int) -> Iterator[pa.Table]:
    yield from (table.slice(start, size) for start in range(0, len(table), size))


def total(parts: list[Counts]) -> list[tuple[str, bytes, int]]:
    summed: Counter[tuple[str, bytes]] = Counter()
    for part in parts:
        summed.update(part)
        summed.update(dict.fromkeys(part, 0))
    return [(*key, count) for key, count in sorted(summed.items())]


@settings(deadline=None)
@given(tables, st.integers(1, 4))
def test_same_as_adding_up_in_memory(parts: list[Counts], size: int) -> None:
    merged = list(merge_counts(in_slices(table_of(part), size) for part in parts))
    assert rows_of(pa.concat_tables([COUNT_SCHEMA.empty_table(), *merged])) == total(parts)
    assert all(part.schema.equals(COUNT_SCHEMA) for part in merged)


def test_memory_holds_one_slice_of_each_table() -> None:
    """The streams are read evenly: none runs ahead of what has been merged by more than a slice."""
    read = [0, 0]

    def stream(number: int) -> Iterator[pa.Table]:
        for part in in_slices(table_of({("en", b"%05d" % (2 * n + number)): 1 for n in range(1000)}), 10):
            read[number] += len(part)
            yield part

    passed_on = 0
    for part in merge_counts([stream(0), stream(1)]):
        passed_on += len(part)
        assert sum(read) - passed_on <= 20
    assert passed_on == 2000


def test_the_task_writes_the_sum_and_tells_it_by_language(tmp_path: Path) -> None:
    chance = random.Random(1)
    parts: list[Counts] = [
        {(chance.choice(["en", "fr"]), b"%d" % chance.randrange(300)): chance.randrange(1, 9) for _ in range(200)}
        for _ in range(5)
    ]
    paths = []
    for number, part in enumerate(parts):
        paths.append(str(tmp_path / f"{number}.parquet"))
        write_counts(paths[-1], [table_of(part)])
    result = merge_shards(Commit(), paths, str(tmp_path / "all.parquet"))
    found = rows_of(pa.concat_tables(read_counts(str(tmp_path / "all.parquet"))))
    assert found == total(parts) and result["pieces"] == len(found)
    for language in ("en", "fr"):
        rows = [row for row in found if row[0] == language]
        assert result["languages"][language] == {"pieces": len(rows), "occurrences": sum(row[2] for row in rows)}
    merge_shards(Commit(), paths[::-1], str(tmp_path / "reversed.parquet"))
    assert (tmp_path / "reversed.parquet").read_bytes() == (tmp_path / "all.parquet").read_bytes()


def test_sorting_adds_equal_rows() -> None:
    table = pa.concat_tables([table_of({("b", b"x"): 1, ("a", b"\xff"): 2}), table_of({("a", b"\xff"): 2**40})])
    assert rows_of(sort_counts(table)) == [("a", b"\xff", 2**40 + 2), ("b", b"x", 1)]


def test_no_tables_give_no_rows(tmp_path: Path) -> None:
    assert merge_shards(Commit(), [], str(tmp_path / "x.parquet")) == {"pieces": 0, "languages": {}}
    assert list(merge.merge_counts([])) == []


@pytest.mark.parametrize("size", [1, 7, 100])
def test_slices_of_a_file_come_back_whole(tmp_path: Path, size: int) -> None:
    table = table_of({("en", b"%03d" % n): n for n in range(100)})
    assert write_counts(str(tmp_path / "t.parquet"), in_slices(table, size)) == 100
    assert pa.concat_tables(read_counts(str(tmp_path / "t.parquet"))).equals(table)
