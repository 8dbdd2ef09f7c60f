"""Rows of foreign Arrow tables to documents: shared by Parquet and Hugging Face datasets.

In: a reader's `Fields` and record batches of any schema. Out: batches of documents, after a quarantined record for each
row whose text is null, is not UTF-8 or is too long. Text stays in Arrow buffers; no Python string is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.sources.arrow_columns import is_number, is_text, json_objects, strings
from roots_pipeline.sources.base import BATCH_ROWS, Quarantined, document_batch, excerpt
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import relative_name


def wanted_columns(reader: Fields) -> list[str]:
    """The columns that a reader uses, if a table has them."""
    fixed = (reader.text_field, reader.id_field, reader.url_field, reader.license_field, reader.language_field)
    return [name for name in (*fixed, *reader.metadata_fields) if name is not None]


def problem_of(reader: Fields, schema: pa.Schema) -> str | None:
    """Why no row of a file with this schema could become a document."""
    if reader.text_field not in schema.names:
        return f"no column `{reader.text_field}`; columns: {', '.join(map(excerpt, schema.names))}"[:400]
    for name in wanted_columns(reader):
        if schema.names.count(name) > 1:
            return f"more than one column is called `{name}`"
    for name in filter(None, (reader.text_field, reader.url_field, reader.license_field, reader.language_field)):
        if name in schema.names and not is_text(schema.field(name).type):
            return f"column `{name}` is of type {schema.field(name).type}, not a string"
    if reader.id_field in schema.names:
        kind = schema.field(reader.id_field).type
        if not (is_text(kind) or is_number(kind)):
            return f"column `{reader.id_field}` is of type {kind}, neither a string nor a number"
    return None


def documents(
    reader: Fields, path: str, first: int, rows: pa.RecordBatch, batch_bytes: int, file: str | None = None
) -> Iterator[pa.RecordBatch | Quarantined]:
    """Rows of the file, the first of which has `first` rows before it, as batches after their bad rows.

    `file` is the name that ids get, if not that of `path` below the root.
    """
    bad: dict[int, str] = {}
    file = relative_name(path, reader.root) if file is None else file
    text = strings(rows, reader.text_field, None, bad, pa.large_string())
    for row in np.flatnonzero(text.is_null().to_numpy(zero_copy_only=False)).tolist():
        bad.setdefault(row, f"`{reader.text_field}` is null")
    sizes = pc.fill_null(pc.binary_length(text), 0).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(sizes > reader.max_document_bytes).tolist():
        bad.setdefault(row, f"`{reader.text_field}` is longer than {reader.max_document_bytes:,} bytes")
    columns = {
        "id": _ids(strings(rows, reader.id_field, None, bad), file, first),
        "text": text,
        "language": strings(rows, reader.language_field, reader.language_of(file), bad),
        "url": strings(rows, reader.url_field, None, bad),
        "license": strings(rows, reader.license_field, reader.license, bad),
        "metadata": json_objects(rows, reader.metadata_fields, bad),
    }
    for row in sorted(bad):
        shown = text[row].as_py() if text[row].is_valid else f"id: {columns['id'][row]}"
        yield Quarantined(path, first + row + 1, bad[row], excerpt(shown))
    if bad:
        good = np.ones(len(rows), bool)
        good[list(bad)] = False
        columns = {name: column.filter(pa.array(good)) for name, column in columns.items()}
    for begin, end in _cuts(columns["text"], batch_bytes):
        yield document_batch(reader.source, {name: c.slice(begin, end - begin) for name, c in columns.items()})


def _ids(ids: pa.Array, file: str, first: int) -> pa.Array:
    """The ids, and `<file>:<row>` where one is missing or empty."""
    missing = pc.fill_null(pc.equal(ids, ""), True)
    if not pc.any(missing).as_py():
        return ids
    numbers = pa.array(np.arange(first + 1, first + len(ids) + 1)).cast(pa.string())
    return pc.if_else(missing, pc.binary_join_element_wise(pa.scalar(file), numbers, ":"), ids)


def _cuts(text: pa.Array, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with at most `batch_bytes` of text each, or one row if that alone is longer."""
    _, offsets = text_buffers(text)
    begin = 0
    while begin < len(text):
        end = int(np.searchsorted(offsets, offsets[begin] + batch_bytes, side="right")) - 1
        end = min(max(end, begin + 1), len(text), begin + BATCH_ROWS)
        yield begin, end
        begin = end
