"""Parquet: the text in one column, of any string type; the other fields in columns of their own.

In: a Parquet file. Out: batches, and a quarantined record for each row whose text is null, is not UTF-8
(Parquet does not check) or is too long, for each stretch of rows that cannot be decoded, and for a file
that is not Parquet or lacks the text column. Text stays in Arrow buffers all the way; no Python string is
made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.sources.arrow_columns import UNREADABLE, is_number, is_text, json_objects, reason_of, strings
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Quarantined, document_batch, excerpt
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import open_input, relative_name

_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Parquet(Fields):
    """Reader of Parquet files. `*_field` are names of top-level columns."""

    name: ClassVar[str] = "parquet"
    version: ClassVar[int] = 1

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".parquet", ".pq")

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        with open_input(path) as handle:
            problem: str | None
            try:
                file = pq.ParquetFile(  # pages are read when needed, and checked if they have a checksum
                    handle, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True)
                problem = self._problem_of(file.schema_arrow)
            except UNREADABLE as error:
                problem = f"not a whole Parquet file: {reason_of(error)}"
            if problem:
                yield Quarantined(path, None, problem, "")
                return
            wanted = [name for name in file.schema_arrow.names if name in self._fields()]
            for first, rows in _row_ranges(file, wanted, self.text_field, batch_bytes):
                if isinstance(rows, str):
                    yield Quarantined(path, first + 1, rows, "")
                else:
                    yield from self._convert(path, first, rows, batch_bytes)

    def _fields(self) -> list[str]:
        fixed = (self.text_field, self.id_field, self.url_field, self.license_field, self.language_field)
        return [name for name in (*fixed, *self.metadata_fields) if name is not None]

    def _problem_of(self, schema: pa.Schema) -> str | None:
        """Why no row of a file with this schema could become a document."""
        if self.text_field not in schema.names:
            return f"no column `{self.text_field}`; columns: {', '.join(map(excerpt, schema.names))}"[:400]
        for name in self._fields():
            if schema.names.count(name) > 1:
                return f"more than one column is called `{name}`"
        for name in filter(None, (self.text_field, self.url_field, self.license_field, self.language_field)):
            if name in schema.names and not is_text(schema.field(name).type):
                return f"column `{name}` is of type {schema.field(name).type}, not a string"
        if self.id_field in schema.names:
            kind = schema.field(self.id_field).type
            if not (is_text(kind) or is_number(kind)):
                return f"column `{self.id_field}` is of type {kind}, neither a string nor a number"
        return None

    def _convert(
        self, path: str, first: int, rows: pa.RecordBatch, batch_bytes: int
    ) -> Iterator[pa.RecordBatch | Quarantined]:
        """Rows of the file, the first of which has `first` rows before it, as batches after their bad rows."""
        bad: dict[int, str] = {}
        file = relative_name(path, self.root)
        text = strings(rows, self.text_field, None, bad, pa.large_string())
        for row in np.flatnonzero(text.is_null().to_numpy(zero_copy_only=False)).tolist():
            bad.setdefault(row, f"`{self.text_field}` is null")
        sizes = pc.fill_null(pc.binary_length(text), 0).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(sizes > self.max_document_bytes).tolist():
            bad.setdefault(row, f"`{self.text_field}` is longer than {self.max_document_bytes:,} bytes")
        columns = {
            "id": _ids(strings(rows, self.id_field, None, bad), file, first),
            "text": text,
            "language": strings(rows, self.language_field, self.language_of(file), bad),
            "url": strings(rows, self.url_field, None, bad),
            "license": strings(rows, self.license_field, self.license, bad),
            "metadata": json_objects(rows, self.metadata_fields, bad),
        }
        for row in sorted(bad):
            shown = text[row].as_py() if text[row].is_valid else f"id: {columns['id'][row]}"
            yield Quarantined(path, first + row + 1, bad[row], excerpt(shown))
        if bad:
            good = np.ones(len(rows), bool)
            good[list(bad)] = False
            columns = {name: column.filter(pa.array(good)) for name, column in columns.items()}
        for begin, end in _cuts(columns["text"], batch_bytes):
            yield document_batch(self.source, {name: c.slice(begin, end - begin) for name, c in columns.items()})


def _row_ranges(
    file: pq.ParquetFile, columns: list[str], text_field: str, batch_bytes: int
) -> Iterator[tuple[int, pa.RecordBatch | str]]:
    """Row groups in parts of about `batch_bytes`: the rows before each part, and the part.

    Where a row group cannot be decoded comes the reason instead of the rest of its rows.
    """
    start = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        chunks = (group.column(index) for index in range(group.num_columns))
        size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == text_field)
        rows = min(BATCH_ROWS, max(1, batch_bytes * group.num_rows // max(1, size)))
        parts = file.iter_batches(batch_size=rows, row_groups=[number], columns=columns, use_threads=False)
        done = start
        while True:
            try:
                part = next(parts, None)
            except UNREADABLE as error:
                yield done, f"rows {done + 1:,} to {start + group.num_rows:,} cannot be read: {reason_of(error)}"
                break
            if part is None:
                break
            yield done, part
            done += part.num_rows
        start += group.num_rows


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
