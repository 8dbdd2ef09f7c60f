"""Several files as one stream of batches: small files, such as single pages, come together in batches of full size.

Every batch costs each later stage a fixed effort, so a batch a page would be many times slower than the pages
themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, FileSlice, Quarantined, Reader
from roots_pipeline.sources.normalisation import normalised
from roots_pipeline.sources.parts import Splittable


def read_files(
    reader: Reader, files: Iterable[FileSlice], batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch | Quarantined]:
    """The documents of all files in order, in batches of about `batch_bytes` of text and at most 2,000 rows.

    The cuts depend only on the files, their order and `batch_bytes`. Raises what `Reader.read` raises.
    """
    held: list[pa.RecordBatch] = []
    size = rows = 0
    for file in files:
        for item in _read(reader, file, batch_bytes):
            if isinstance(item, Quarantined):
                yield item
                continue
            if reader.normalise_text is not None:
                item = normalised(item, reader.normalise_text)
            if held and rows + item.num_rows > BATCH_ROWS:
                yield _together(held)
                held, size, rows = [], 0, 0
            held.append(item)
            size += item.column("text").nbytes
            rows += item.num_rows
            if size >= batch_bytes or rows >= BATCH_ROWS:
                yield _together(held)
                held, size, rows = [], 0, 0
    if held:
        yield _together(held)


def _read(reader: Reader, file: FileSlice, batch_bytes: int) -> Iterator[pa.RecordBatch | Quarantined]:
    if file.part is None:
        return reader.read(file.path, batch_bytes)
    assert isinstance(reader, Splittable)
    return reader.read_part(file.path, file.part, batch_bytes)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
