"""What the tests of readers share: run a reader, and split its output into documents and bad records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Quarantined, Reader


def run(reader: Reader, path: object, batch_bytes: int = BATCH_BYTES) -> tuple[list[dict[str, Any]], list[Quarantined]]:
    """Documents and quarantined records of one file; checks what must hold for every output."""
    documents: list[dict[str, Any]] = []
    bad: list[Quarantined] = []
    for item in reader.read(str(path), batch_bytes):
        if isinstance(item, Quarantined):
            assert len(item.excerpt) <= 200 and all(char.isprintable() for char in item.excerpt)
            assert item.reason and item.file == str(path)
            bad.append(item)
        else:
            assert item.schema == DOCUMENT_SCHEMA
            assert 0 < item.num_rows <= BATCH_ROWS
            item.validate(full=True)
            documents += item.to_pylist()
    return documents, bad


def batches(reader: Reader, path: object, batch_bytes: int = BATCH_BYTES) -> list[pa.RecordBatch]:
    """The batches of a file without bad records."""
    items = list(reader.read(str(path), batch_bytes))
    assert not any(isinstance(item, Quarantined) for item in items)
    return items


def texts(documents: list[dict[str, Any]]) -> list[str]:
    return [document["text"] for document in documents]
