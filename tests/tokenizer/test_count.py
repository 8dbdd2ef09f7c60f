"""Counting against a plain Counter, within and beyond the memory allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch, text_buffers
from roots_pipeline.core.errors import SourceError, StorageError
from roots_pipeline.core.tasks import Commit
from tests.tokenizer import plain
from tests.tokenizer.corpora import sample_texts
from tokenizer.count import UNDETERMINED, count_batches, count_shard
from tokenizer.counts_file import COUNT_SCHEMA, read_counts
from tokenizer.piece_table import PieceTable

Row = tuple[str, str | None]


def expected(rows: Sequence[Row]) -> list[tuple[str, bytes, int]]:
    counts: Counter[tuple[str, bytes]] = Counter()
    for text, language in rows:
        counts.update((language or UNDETERMINED, piece.encode()) for piece in plain.split(text))
    return [(*key, count) for key, count in sorted(counts.items())]


def rows_of(table: pa.Table) -> list[tuple[str, bytes, int]]:
    """Rows of a table whose documents all have the source "s"."""
    assert set(table["source"].to_pylist()) <= {"s"}
    return list(zip(*(column.to_pylist() for column in table.drop_columns("source").columns), strict=True))


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return make_batch([{"id": str(n), "text": t, "source": "s", "language": lang} for n, (t, lang) in enumerate(rows)])


def write_shard(path: Path, rows: Sequence[Row], rows_of_a_group: int = 7) -> str:
    pq.write_table(pa.Table.from_batches([batch_of(rows)]), path, row_group_size=rows_of_a_group)
    return str(path)


texts = st.text(st.sampled_from("ab é中.।\n\x00 ")) | st.text()
some_rows = st.lists(st.tuples(texts, st.sampled_from(["en", "fr", "zh", None])), max_size=12)


@settings(deadline=None)
@given(some_rows)
def test_same_as_a_plain_counter(rows: list[Row]) -> None:
    table = count_batches([batch_of(rows[:5]), batch_of(rows[5:])])
    assert table.schema.equals(COUNT_SCHEMA)
    assert rows_of(table) == expected(rows)


@settings(deadline=None)
@given(some_rows.filter(bool), st.integers(0, 3))
def test_a_sliced_column_counts_its_slice(rows: list[Row], start: int) -> None:
    assert rows_of(count_batches([batch_of(rows).slice(start)])) == expected(rows[start:])


def test_the_table_grows_over_many_distinct_pieces() -> None:
    rows = [(" ".join(f"w{n}" for n in range(start, start + 5000)), "en") for start in range(0, 60_000, 2500)]
    assert rows_of(count_batches([batch_of(rows)])) == expected(rows)


def test_the_same_bytes_in_two_groups_are_two_entries() -> None:
    table = PieceTable()
    data, offsets = text_buffers(pa.array(["ab ab", "ab"], pa.large_string()))
    table.add_texts(data, offsets, np.array([0, 1], np.int32))
    _, _, lengths, groups, counts = table.entries()
    assert table.pieces() == [b"ab", b" ab", b"ab"]
    assert (lengths.tolist(), groups.tolist(), counts.tolist()) == ([2, 3, 2], [0, 0, 1], [1, 1, 1])


def test_counts_are_64_bit() -> None:
    table = PieceTable()
    data, offsets = text_buffers(pa.array(["ab", "cd", "ab"], pa.large_string()))
    table.add_pieces(data, offsets, np.zeros(3, np.int32), np.array([2**40, 1, 2**61], np.int64))
    assert table.entries()[4].tolist() == [2**61 + 2**40, 1]


def test_a_piece_longer_than_the_arena() -> None:
    rows = [("b c", "en"), ("a" * 3_000_000, "en"), ("b c", "en")]
    assert rows_of(count_batches([batch_of(rows)])) == expected(rows)


@pytest.mark.parametrize("pieces_in_memory", [1, 50, 10**6])
def test_shards_beyond_memory_give_the_same_bytes(sample: Path, tmp_path: Path, pieces_in_memory: int) -> None:
    rows: list[Row] = [(text, ("en", "fr", None)[n % 3]) for n, text in enumerate(sample_texts(sample)[:40])]
    shard = write_shard(tmp_path / "shard.parquet", rows)
    result = count_shard(Commit(), shard, str(tmp_path / "all.parquet"))
    limited = count_shard(Commit(), shard, str(tmp_path / "few.parquet"), pieces_in_memory=pieces_in_memory)
    assert result == limited
    assert (tmp_path / "all.parquet").read_bytes() == (tmp_path / "few.parquet").read_bytes()
    assert rows_of(pa.concat_tables(read_counts(str(tmp_path / "all.parquet")))) == expected(rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.parquet", "few.parquet", "shard.parquet"]
    assert result["documents"] == 40 and result["bytes"] == sum(len(text.encode()) for text, _ in rows)
    assert result["groups"]["und"]["s"]["documents"] == 13


def test_an_empty_shard(tmp_path: Path) -> None:
    result = count_shard(Commit(), write_shard(tmp_path / "s.parquet", []), str(tmp_path / "c.parquet"))
    assert result == {"documents": 0, "bytes": 0, "groups": {}}
    assert pq.read_table(tmp_path / "c.parquet").num_rows == 0


def test_a_shard_that_cannot_be_read(tmp_path: Path) -> None:
    good = write_shard(tmp_path / "s.parquet", [("a b", "en")] * 100)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(Path(good).read_bytes()[:-20])
    with pytest.raises(SourceError, match=r"cut\.parquet"):
        count_shard(Commit(), str(cut), str(tmp_path / "c.parquet"))
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "columns.parquet")
    with pytest.raises(SourceError, match="no column language and no column source"):
        count_shard(Commit(), str(tmp_path / "columns.parquet"), str(tmp_path / "c.parquet"))
    with pytest.raises(SourceError, match=r"none\.parquet"):
        count_shard(Commit(), str(tmp_path / "none.parquet"), str(tmp_path / "c.parquet"))
    assert not (tmp_path / "c.parquet").exists()


def test_another_file_is_no_count_table(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "s.parquet", [("a", "en")])
    with pytest.raises(StorageError, match="not a table of counts"):
        list(read_counts(shard))
    (tmp_path / "text").write_text("x")
    with pytest.raises(StorageError, match="not a Parquet file"):
        list(read_counts(str(tmp_path / "text")))
