"""Files of blocks: what is read is what was written, in blocks neither tiny nor huge, or a sentence says of damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline import blocks
from roots_pipeline.blocks import BlockFile, write_blocks
from roots_pipeline.core.errors import StorageError


def table_of(numbers: list[int]) -> pa.Table:
    rows = range(len(numbers))
    return pa.table({"number": pa.array(numbers, pa.int64()), "text": [f"row {row}" for row in rows],
                     "list": pa.array([list(range(row % 4)) or None for row in rows], pa.list_(pa.uint32()))})


def write(path: Path, numbers: list[int], table: pa.Table | None = None) -> pa.Table:
    table = table_of(numbers) if table is None else table
    write_blocks(str(path), table, np.array(numbers, np.int64), name="föö")
    return table


@given(numbers=st.lists(st.integers(0, 9), max_size=60).map(sorted), size=st.sampled_from([1, 100, 300, 1 << 16]),
       first=st.integers(0, 9), span=st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_rows_of_a_range_of_numbers_are_read(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], size: int, first: int, span: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "file"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK_BYTES", size)
        table = write(path, numbers)
    with BlockFile(str(path)) as file:
        assert file.facts == {"name": "föö"} and file.schema == table.schema
        assert file.read().equals(table)
        found = file.read(first, first + span)
    places = [place for place, number in enumerate(numbers) if first <= number <= first + span]
    rows = found.column("text").to_pylist()
    assert [row for row in rows if row in {f"row {place}" for place in places}] == [f"row {place}" for place in places]


def sizes_of(path: Path) -> list[int]:
    with BlockFile(str(path)) as file:
        return [file._block(*place).num_rows for _, _, *place in file._blocks]


def test_blocks_begin_with_a_number_and_are_neither_tiny_nor_huge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_MOST_ROWS", 10)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 4 * 8)
    numbers = [0] * 3 + [1] * 2 + [2] * 1 + [3] * 1 + [4] * 24 + [5] * 2
    write(tmp_path / "file", numbers, pa.table({"number": pa.array(numbers, pa.int64())}))
    assert sizes_of(tmp_path / "file") == [5, 10, 10, 6, 2]
    with BlockFile(str(tmp_path / "file")) as file:
        assert file.read(4, 4).num_rows == 26


def test_large_rows_make_blocks_of_their_own(tmp_path: Path) -> None:
    numbers = list(range(20))
    write(tmp_path / "file", numbers, pa.table({"text": ["x" * 100_000] * 20}))
    with BlockFile(str(tmp_path / "file")) as file:
        assert file.read(7, 8).num_rows == 2


def test_no_rows(tmp_path: Path) -> None:
    table = write(tmp_path / "file", [])
    with BlockFile(str(tmp_path / "file")) as file:
        assert file.read(0, 5).equals(table) and file.read().schema == table.schema


def test_equal_rows_make_equal_files(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write(tmp_path / name, [1, 1, 2, 3])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_damage_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, [1, 1, 2, 3, 3])
    whole = path.read_bytes()
    damaged = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole[:length] for length in range(len(whole))] + [whole + b"x"]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(StorageError, match="damaged"), BlockFile(str(path)) as file:
            file.read()
