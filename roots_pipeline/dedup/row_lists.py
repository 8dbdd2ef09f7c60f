"""What one round of an exchange found, kept beside the documents for the next round: a working column of lists.

Findings speak of shard and row, any number of them for a row. `collect` puts them into one list a row, `spread` gives
them back as a table with the row each belongs to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def collect(items: pa.Table, rows: npt.NDArray[np.int64], length: int) -> pa.Array:
    """A list column of `length` rows: item i goes to row `rows[i]`. A list holds structs of the table's columns."""
    order = np.argsort(rows, kind="stable")
    offsets = np.searchsorted(rows[order], np.arange(length + 1))
    ordered = items.take(pa.array(order)).combine_chunks()
    arrays = [_array(ordered.column(name)) for name in items.column_names]
    values = pa.StructArray.from_arrays(arrays, fields=list(items.schema))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values).cast(list_type(items.schema))


def spread(lists: pa.Array) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """All items of a list column, and the row of each."""
    values = pc.list_flatten(lists)
    rows: npt.NDArray[np.int64] = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return pa.Table.from_struct_array(values), rows


def empty_lists(schema: pa.Schema, length: int) -> pa.Array:
    """The list column before anything was found."""
    return pa.nulls(length, list_type(schema))


def list_type(schema: pa.Schema) -> pa.DataType:
    """The type of a column of lists of such items."""
    return pa.large_list(pa.struct(list(schema)))


def distinct(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The first of all rows with equal values, for each set of equal rows; sorted by the columns."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order[new]


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
