"""Count the pieces of documents, per language.

In: one Parquet shard of a corpus (columns `text`, `language`), read batch by batch. Out: a sorted count table.
The table of distinct pieces may grow to `PIECES_IN_MEMORY`; then it is sorted, put aside as a run, and the runs
are merged at the end, so memory is bounded for shards of any size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.storage import open_read
from roots_pipeline.core.tasks import Commit
from tokenizer.content import REMAKE_DOCUMENTS, check_content
from tokenizer.counts_file import COUNT_SCHEMA, read_counts, sorted_counts, write_counts
from tokenizer.merge import merge_counts
from tokenizer.piece_table import PieceTable

COUNT_VERSION = 1  # raise it when the counts of the same text would change
UNDETERMINED = "und"  # the language of documents that have none (ISO 639-2)
PIECES_IN_MEMORY = 8_000_000
_BYTES_IN_MEMORY = 1 << 30
_BATCH = 1024


class LanguageCounter:
    """Counts pieces of texts in many languages in one table."""

    def __init__(self) -> None:
        self.table = PieceTable()
        self.documents: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def add(self, texts: pa.Array, languages: pa.Array) -> None:
        """Count a batch of documents: a `large_string` column and a column of language codes (null:
        undetermined)."""
        data, offsets = text_buffers(texts)
        encoded = pc.fill_null(languages.cast(pa.string()), UNDETERMINED).dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        numbers = np.array([self._numbers.setdefault(name, len(self._numbers)) for name in names], np.int32)
        local = encoded.indices.to_numpy(zero_copy_only=False)
        self.table.add_texts(data, offsets, numbers[local] if names else np.empty(0, np.int32))
        self._note(names, local, np.diff(offsets))

    def slices(self) -> Iterator[pa.Table]:
        """The counts so far, sorted (see `counts_file`)."""
        return sorted_counts(self.table, list(self._numbers))

    def restart(self) -> None:
        """Forget the pieces, keep the totals."""
        self.table, self._numbers = PieceTable(), {}

    def _note(self, names: list[str], local: npt.NDArray[Any], lengths: npt.NDArray[np.int64]) -> None:
        documents = np.bincount(local, minlength=len(names)).tolist()
        sizes = np.bincount(local, weights=lengths.astype(np.float64), minlength=len(names)).tolist()
        for name, number, size in zip(names, documents, sizes, strict=True):
            self.documents[name] = self.documents.get(name, 0) + number
            self.bytes[name] = self.bytes.get(name, 0) + int(size)


def count_batches(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """The sorted count table of documents that fit in memory."""
    counter = LanguageCounter()
    for batch in batches:
        counter.add(batch.column("text"), batch.column("language"))
    return pa.concat_tables([COUNT_SCHEMA.empty_table(), *counter.slices()])


def count_shard(
    commit: Commit,
    documents: str,
    output: str,
    content: str | None = None,
    pieces_in_memory: int = PIECES_IN_MEMORY,
) -> dict[str, Any]:
    """Task: count one shard, whose xxh3-128 is `content` (None: not compared).

    Result: `documents`, `bytes`, and both by language. Raises SourceError if the shard is unreadable,
    StaleDataError if its content is another.
    """
    if content is not None:
        check_content(documents, content, REMAKE_DOCUMENTS)
    counter = LanguageCounter()
    with commit.file(output) as temporary, _runs(temporary) as runs:
        for batch in _read_batches(documents):
            counter.add(batch.column("text"), batch.column("language"))
            if len(counter.table) > pieces_in_memory or counter.table.arena_bytes > _BYTES_IN_MEMORY:
                runs.append(f"{temporary.removesuffix('.tmp')}-{len(runs)}.tmp")
                write_counts(runs[-1], counter.slices())
                counter.restart()
        streams = [*map(read_counts, runs), counter.slices()]
        write_counts(temporary, merge_counts(streams) if runs else streams[0])
    languages = {
        name: {"documents": counter.documents[name], "bytes": counter.bytes[name]} for name in sorted(counter.bytes)
    }
    return {
        "documents": sum(counter.documents.values()), "bytes": sum(counter.bytes.values()), "languages": languages,
    }  # fmt: skip


def _read_batches(path: str) -> Iterator[pa.RecordBatch]:
    try:
        with open_read(path) as handle:
            file = pq.ParquetFile(handle)
            missing = {"text", "language"} - set(file.schema_arrow.names)
            if missing:
                raise SourceError(
                    f"this shard has no column {' and no column '.join(sorted(missing))}.", where=path,
                    hint="Give the documents that `python -m roots_pipeline run` wrote.",
                )  # fmt: skip
            yield from file.iter_batches(_BATCH, columns=["text", "language"])
    except (pa.ArrowException, FileNotFoundError) as error:
        raise SourceError(
            f"this shard of documents cannot be read ({error}).", where=path, hint="Make the corpus again."
        ) from error


@contextmanager
def _runs(temporary: str) -> Iterator[list[str]]:
    """Paths of runs that were put aside; removed at the end, whatever happened."""
    runs: list[str] = []
    try:
        yield runs
    finally:
        for path in runs:
            if os.path.exists(path):
                os.remove(path)
