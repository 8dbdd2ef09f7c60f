"""Documents: the columns of every batch, and how their text is reached without making Python strings.

A batch is a `pyarrow.RecordBatch`. `text` is `large_string`, never `string`, whose 32-bit offsets overflow at
2 GiB. A document never vanishes: a rule writes its name into `verdict` (null = kept), and `cause` names the other
document that led to it. Measures are further float64 columns, named as the rule that computes them names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DOCUMENT_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("language", pa.string()),
        pa.field("url", pa.string()),
        pa.field("license", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("verdict", pa.string()),
        pa.field("cause", pa.string()),
    ]
)

IDENTITY = ("id", "source", "language", "url", "license", "metadata")


def make_batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """A batch from plain dictionaries; missing columns become null. For readers of small records and for tests."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in DOCUMENT_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_SCHEMA)


def text_buffers(column: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """UTF-8 bytes and offsets of a `large_string` column, without copying the text.

    Returns `(data, offsets)`: document i is `data[offsets[i]:offsets[i + 1]]`; `offsets` has len + 1 entries.
    Nulls look like empty texts.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not pa.types.is_large_string(column.type) and not pa.types.is_large_binary(column.type):
        column = column.cast(pa.large_string())
    _, offset_buffer, data_buffer = column.buffers()
    if len(column) == 0 or offset_buffer is None:
        return np.empty(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return data, offsets


def with_columns(batch: pa.RecordBatch, new: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batch with columns replaced, or appended in the order given."""
    names, arrays = list(batch.schema.names), list(batch.columns)
    for name, array in new.items():
        if name in names:
            arrays[names.index(name)] = array
        else:
            names.append(name)
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def kept(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Which rows have no verdict yet."""
    mask: npt.NDArray[np.bool_] = batch.column("verdict").is_null().to_numpy(zero_copy_only=False)
    return mask
