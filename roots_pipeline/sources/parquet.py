"""Parquet: the text in one column, of any string type; the other fields in columns of their own.

In: a Parquet file. Out: batches, and a quarantined record for each row whose text is null, is not UTF-8
(Parquet does not check) or is too long, for each stretch of rows that cannot be decoded, and for a file
that is not Parquet or lacks the text column. Text stays in Arrow buffers all the way; no Python string is
made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.sources.arrow_columns import UNREADABLE, reason_of
from roots_pipeline.sources.arrow_records import documents, problem_of, wanted_columns
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Part, Quarantined, RowGroups
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
        yield from self._read(path, None, batch_bytes)

    def parts(self, path: str, size: int, wanted: int) -> list[Part]:
        """See `Splittable.parts`: neighbouring row groups, by their sizes in the footer."""
        with open_input(path) as handle:
            try:
                footer = pq.ParquetFile(handle).metadata
                sizes = [_compressed(footer.row_group(number)) for number in range(footer.num_row_groups)]
            except UNREADABLE:
                return []  # it will be read whole, and then said what is wrong
        total, before = max(1, sum(sizes)), np.append(0, np.cumsum(sizes))
        place = before[:-1] * wanted // total  # the part in which a row group begins
        borders = [0, *(np.flatnonzero(np.diff(place)) + 1).tolist(), len(sizes)]
        return [RowGroups(begin, end, int(before[end] - before[begin])) for begin, end in pairwise(borders)]

    def read_part(
        self, path: str, part: Part, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Splittable.read_part`."""
        yield from self._read(path, part, batch_bytes)

    def _read(self, path: str, part: Part | None, batch_bytes: int) -> Iterator[pa.RecordBatch | Quarantined]:
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
            for first, rows in _row_ranges(file, part, wanted, self.text_field, batch_bytes):
                if isinstance(rows, str):
                    yield Quarantined(path, first + 1, rows, "")
                else:
                    yield from documents(self, path, first, rows, batch_bytes)


def _row_ranges(
    file: pq.ParquetFile, part: Part | None, columns: list[str], text_field: str, batch_bytes: int
) -> Iterator[tuple[int, pa.RecordBatch | str]]:
    """Row groups in parts of about `batch_bytes`: the rows before each part, and the part.

    Where a row group cannot be decoded comes the reason instead of the rest of its rows.
    """
    start = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if isinstance(part, RowGroups) and not part.begin <= number < part.end:
            start += group.num_rows
            continue
        chunks = (group.column(index) for index in range(group.num_columns))
        size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema == text_field)
        rows = min(BATCH_ROWS, max(1, batch_bytes * group.num_rows // max(1, size)))
        parts = file.iter_batches(batch_size=rows, row_groups=[number], columns=columns, use_threads=False)
        done = start
        while True:
            try:
                batch = next(parts, None)
            except UNREADABLE as error:
                yield done, f"rows {done + 1:,} to {start + group.num_rows:,} cannot be read: {reason_of(error)}"
                break
            if batch is None:
                break
            yield done, batch
            done += batch.num_rows
        start += group.num_rows


def _compressed(group: pq.RowGroupMetaData) -> int:
    """Bytes of a row group in the file."""
    return sum(group.column(index).total_compressed_size for index in range(group.num_columns))
