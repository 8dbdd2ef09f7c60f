"""Columns of a foreign Arrow table as columns of documents: any string as checked UTF-8, the rest as JSON.

Parquet writers disagree on how a string is stored (string, large_string, dictionary, bare binary), and no
reader checks that a string is UTF-8. Both would only show far downstream.
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

# What Arrow raises for bytes that cannot be decoded. OSError too, but then without an errno.
UNREADABLE = (pa.ArrowException, OSError)


def reason_of(error: Exception) -> str:
    """A decoding error in one line. One of the operating system is raised again: the data are not at fault."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    return str(error).split("\n", 1)[0][:300]


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type may hold text: strings and binaries of all sizes, also as a dictionary."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_null(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers that have one decimal spelling."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def strings(
    rows: pa.RecordBatch, name: str | None, otherwise: str | None, bad: dict[int, str],
    kind: pa.DataType = pa.string(),  # noqa: B008  (a constant)
) -> pa.Array:
    """A column as strings; the same value for all rows if no column is named, nulls if the table lacks it.

    Rows that are not UTF-8 become null and are noted in `bad`.
    """
    if name is None:
        return pa.repeat(pa.scalar(otherwise, kind), len(rows))
    if name not in rows.schema.names:
        return pa.nulls(len(rows), kind)
    column = rows.column(name)
    if is_number(column.type):
        return column.cast(kind)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    # By way of binary, because only the cast from binary looks at the bytes.
    raw = column.cast(pa.large_binary() if kind == pa.large_string() else pa.binary())
    try:
        return raw.cast(kind)
    except pa.ArrowInvalid:
        return _decoded(raw, name, bad).cast(kind)


def _decoded(raw: pa.Array, name: str, bad: dict[int, str]) -> pa.Array:
    values: list[str | None] = []
    for row, value in enumerate(raw.to_pylist()):
        try:
            values.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            values.append(None)
            bad.setdefault(row, f"`{name}` is not valid UTF-8")
    return pa.array(values, pa.large_string())


def json_objects(rows: pa.RecordBatch, names: tuple[str, ...], bad: dict[int, str]) -> pa.Array:
    """The columns of these names together, one JSON object a row; null where the table has none of them."""
    found = [name for name in names if name in rows.schema.names]
    values: list[str | None] = [None] * len(rows)
    for row in range(len(rows) if found else 0):
        try:
            record = {name: rows.column(name)[row].as_py() for name in found}
            values[row] = orjson.dumps(record, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
        except (UnicodeDecodeError, orjson.JSONEncodeError) as error:
            bad.setdefault(row, f"the metadata cannot be kept: {error}"[:300])
    return pa.array(values, pa.string())


def _plain(value: Any) -> str:
    """Types that JSON lacks (decimals, durations, bytes) as strings."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
