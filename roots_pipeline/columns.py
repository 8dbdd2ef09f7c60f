"""Row-aligned column files: each step writes the columns it changed, beside those of the steps before.

A stage file is Parquet with one row group per batch. Files of one shard have the same row groups with the same rows,
so a view over them finds each column in the last file that has it. Text is written once and never copied because a
verdict changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import is_remote, open_read, remove_file


def open_parquet(path: str) -> pq.ParquetFile:
    """Open one of our Parquet files, local or remote; StorageError if it is damaged."""
    try:
        return pq.ParquetFile(open_read(path) if is_remote(path) else path, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise StorageError(
            f"not a readable Parquet file ({error}).", where=path, hint="Delete it and run the same command again."
        ) from error


# Columns in which every value is another one: a dictionary would only cost time.
_UNIQUE = ("id", "text", "url")


@contextmanager
def noticing_damage(path: str) -> Iterator[None]:
    """Delete a stage file that turns out to be damaged, so that the same command makes it anew."""
    try:
        yield
    except (StorageError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not there, or a disk that does not answer
            raise
        remove_file(path)
        raise StorageError("this stage file was damaged, and was deleted.", where=path,
                           hint="Run the same command again: it will be made anew.") from error


class BatchWriter:
    """Writes batches as row groups of a Parquet file; opened by its first batch or by `schema`.

    Stage files are read back soon, several times: LZ4 makes them a third larger than zstd does, and reads twice as
    fast. Files that last (`lasting`) are packed with zstd.
    """

    def __init__(self, path: str, schema: pa.Schema | None = None, *, lasting: bool = False) -> None:
        self._path, self._schema, self._lasting = path, schema, lasting
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is None and self._schema is not None and error is None:
            self._open(self._schema)
        if self._writer is not None:
            self._writer.close()

    def _open(self, schema: pa.Schema) -> pq.ParquetWriter:
        few = [field.name for field in schema if pa.types.is_string(field.type) and field.name not in _UNIQUE]
        self._writer = pq.ParquetWriter(
            self._path, schema, use_dictionary=few, write_page_checksum=True,
            compression="zstd" if self._lasting else "lz4", compression_level=3 if self._lasting else None,
        )
        return self._writer

    def write(self, batch: pa.RecordBatch) -> None:
        """Append one batch as one row group."""
        writer = self._writer or self._open(self._schema or batch.schema)
        writer.write_batch(batch, row_group_size=max(1, batch.num_rows))
        self.rows += batch.num_rows


class ColumnView:
    """All columns of one shard over the files that hold them; later files win."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._files = [_open_stage(path) for path in paths]
        self._paths = dict(zip(map(id, self._files), paths, strict=True))
        groups = {file.num_row_groups for file in self._files}
        if len(groups) != 1 or len({file.metadata.num_rows for file in self._files}) != 1:
            raise StorageError("stage files of one shard do not have the same rows.", where=", ".join(paths),
                               hint="Delete them and run the same command again.")
        self.batches: int = groups.pop()
        fields = [(field, file) for file in self._files for field in file.schema_arrow]
        self._home = {field.name: file for field, file in fields}
        latest = {field.name: field for field, _ in fields}
        self.schema = pa.schema([latest[name] for name in self._home])  # all columns with their types

    def read(self, index: int, columns: Iterable[str]) -> pa.RecordBatch:
        """The wanted columns of one batch; unknown names are left out."""
        wanted = [name for name in self._home if name in set(columns)]
        parts: dict[str, Any] = {}
        for file in self._files:
            mine = [name for name in wanted if self._home[name] is file]
            if mine:
                with noticing_damage(self._paths[id(file)]):
                    table = file.read_row_group(index, columns=mine, use_threads=False).combine_chunks()
                parts.update({name: _one_chunk(table.column(name)) for name in mine})
        return pa.RecordBatch.from_arrays([parts[name] for name in wanted], names=wanted)


def _open_stage(path: str) -> pq.ParquetFile:
    with noticing_damage(path):
        return open_parquet(path)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
