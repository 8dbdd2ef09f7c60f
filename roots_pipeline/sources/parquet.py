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

import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.sources.arrow_columns import UNREADABLE, reason_of
from roots_pipeline.sources.arrow_records import documents, problem_of, wanted_columns
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Quarantined
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import open_input

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
                problem = problem_of(self, file.schema_arrow)
            except UNREADABLE as error:
                problem = f"not a whole Parquet file: {reason_of(error)}"
            if problem:
                yield Quarantined(path, None, problem, "")
                return
            wanted = [name for name in file.schema_arrow.names if name in wanted_columns(self)]
            for first, rows in _row_ranges(file, wanted, self.text_field, batch_bytes):
                if isinstance(rows, str):
                    yield Quarantined(path, first + 1, rows, "")
                else:
                    yield from documents(self, path, first, rows, batch_bytes)


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
