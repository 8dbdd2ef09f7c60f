"""Reading a run's files: Parquet in small batches, and one sentence instead of a traceback for what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.storage import is_remote, list_files, open_read
from roots_pipeline.report.safe_text import decode

BATCH_ROWS = 16_384
TABLE_ROWS = 200  # that the page shows at most; junk in a language column must not make it endless


@contextmanager
def expecting(path: str, command: str) -> Iterator[None]:
    """Turn fields that are missing or of another kind into StaleDataError; `command` writes the file anew."""
    try:
        yield
    except FileNotFoundError as error:
        raise StaleDataError("a file of this run is missing.", where=path, hint=f"Run `{command}` again.") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OSError, pa.ArrowException) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise StaleDataError(
            f"it does not hold what this version expects ({reason}).", where=path, hint=f"Run `{command}` again."
        ) from error


def parquet_files(folder: str) -> Iterator[pq.ParquetFile]:
    """All Parquet files of a folder in order of name, one open at a time."""
    for path in list_files(folder, ".parquet"):
        with pq.ParquetFile(open_read(path) if is_remote(path) else path) as file:
            yield file


def batches(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a file, a bounded number of rows at a time."""
    yield from file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns), use_threads=False)


def strings(column: pa.Array) -> list[str | None]:
    """A string column as Python strings; bytes that are not UTF-8 do not raise."""
    return [None if value is None else decode(value) for value in column.cast(pa.large_binary()).to_pylist()]


def optional_number(values: dict[str, Any], name: str) -> float | None:
    """A number of a JSON object, None if it is absent, null or no number."""
    value = values.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
