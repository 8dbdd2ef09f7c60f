"""Files of keys: every range of slices gives exactly the entries whose keys lie in it, however batches were cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline import blocks, steps
from roots_pipeline.core.errors import StorageError

KEYS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 2**64 - 1).map(lambda key: key & 0xFF << 56), max_size=60)


def table_of(keys: list[int]) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.uint64()), "row": pa.array(range(len(keys)), pa.int64())})


@given(keys=KEYS, slices=st.integers(1, 40), size=st.sampled_from([1, 80, 1 << 16]), cuts=st.lists(st.integers(0, 40)))
@settings(max_examples=150, deadline=None)
def test_ranges_of_slices_hold_their_entries(
    tmp_path_factory: pytest.TempPathFactory, keys: list[int], slices: int, size: int, cuts: list[int]
) -> None:
    path = str(tmp_path_factory.mktemp("keys") / "keys.arrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK_BYTES", size)
        sizes = steps._write_slices(table_of(keys), slices, path)
    assert len(sizes) == slices and all((size > 0) == any(_slice(key, slices) == number for key in keys)
                                        for number, size in enumerate(sizes))
    edges = sorted({0, slices, *(cut for cut in cuts if cut < slices)})
    for first, last in pairwise(edges):
        found = steps._read_slices(path, first, last)
        expected = [row for row, key in enumerate(keys) if first <= _slice(key, slices) < last]
        assert sorted(found.column("row").to_pylist()) == expected
        assert found.schema == table_of([]).schema and found.schema.metadata is None


def _slice(key: int, slices: int) -> int:
    return (key >> 32) * slices >> 32


def test_a_damaged_file_goes(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    steps._write_slices(table_of([1, 2]), 4, str(path))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="was damaged, and was deleted"):
        steps._read_slices(str(path), 0, 1)
    assert not path.exists()
