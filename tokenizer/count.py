"""Count the pieces of documents, per language and source.

In: one Parquet shard of documents (columns `text`, `language`, `source`), read batch by batch. Out: a sorted count
table. The table of distinct pieces may grow to `PIECES_IN_MEMORY`; then it is sorted, put aside as a run, and the runs
are merged at the end, so memory is bounded for shards of any size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
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
from tokenizer.counts_file import COUNT_SCHEMA, Group, group_numbers, read_counts, sorted_counts, write_counts
from tokenizer.merge import merge_counts
from tokenizer.piece_table import PieceTable
from tokenizer.pretokenizers import BLOOM, Splitter

COUNT_VERSION = 2  # raise it when the counts of the same text would change
UNDETERMINED = "und"  # the language of documents that have none (ISO 639-2)
PIECES_IN_MEMORY = 8_000_000
_BYTES_IN_MEMORY = 1 << 30
_BATCH = 1024
_COLUMNS = ("text", "language", "source")


class Totals:
    """Documents and bytes by group (language, source)."""

    def __init__(self) -> None:
        self._documents: dict[Group, int] = {}
        self._bytes: dict[Group, int] = {}

    def add(self, names: list[Group], local: npt.NDArray[Any], offsets: npt.NDArray[np.int64]) -> None:
        """Note documents with these offsets, of which document i belongs to names[local[i]]."""
        documents = np.bincount(local, minlength=len(names)).tolist()
        sizes = np.bincount(local, weights=np.diff(offsets).astype(np.float64), minlength=len(names)).tolist()
        for name, number, size in zip(names, documents, sizes, strict=True):
            self._documents[name] = self._documents.get(name, 0) + number
            self._bytes[name] = self._bytes.get(name, 0) + int(size)

    def facts(self) -> dict[str, Any]:
        """`documents`, `bytes`, and `groups`: the same by language, then source."""
        groups: dict[str, dict[str, dict[str, int]]] = {}
        for language, source in sorted(self._documents):
            facts = {"documents": self._documents[language, source], "bytes": self._bytes[language, source]}
            groups.setdefault(language, {})[source] = facts
        return {"documents": sum(self._documents.values()), "bytes": sum(self._bytes.values()), "groups": groups}


class GroupCounter:
    """Counts pieces of texts of many groups in one table."""

    def __init__(self, patterns: Sequence[str] = BLOOM) -> None:
        self.table = PieceTable()
        self.totals = Totals()
        self._numbers: dict[Group, int] = {}
        self._splitter = None if tuple(patterns) == BLOOM else Splitter(tuple(patterns))

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of documents (a language of null: undetermined)."""
        names, local = groups_of(batch)
        texts = batch.column("text")
        data, offsets = text_buffers(texts)
        numbers = np.array([self._numbers.setdefault(name, len(self._numbers)) for name in names], np.int32)
        each = numbers[local] if names else np.empty(0, np.int32)
        if self._splitter is None:
            self.table.add_texts(data, offsets, each)
        else:
            pieces, lengths = self._splitter.split_column(texts)
            ones = np.ones(len(pieces), np.int64)
            self.table.add_pieces(*text_buffers(pieces), np.repeat(each, lengths), ones)
        self.totals.add(names, local, offsets)

    def slices(self) -> Iterator[pa.Table]:
        """The counts so far, sorted (see `counts_file`)."""
        return sorted_counts(self.table, list(self._numbers))

    def restart(self) -> None:
        """Forget the pieces, keep the totals."""
        self.table, self._numbers = PieceTable(), {}


def groups_of(batch: pa.RecordBatch) -> tuple[list[Group], npt.NDArray[np.int64]]:
    """The groups of a batch of documents, and which of them each document belongs to."""
    languages = pc.fill_null(batch.column("language").cast(pa.string()), UNDETERMINED)
    sources = batch.column("source").cast(pa.string())
    return group_numbers(pa.table({"language": languages, "source": sources}))


def count_batches(batches: Iterable[pa.RecordBatch], patterns: Sequence[str] = BLOOM) -> pa.Table:
    """The sorted count table of documents that fit in memory."""
    counter = GroupCounter(patterns)
    for batch in batches:
        counter.add(batch)
    return pa.concat_tables([COUNT_SCHEMA.empty_table(), *counter.slices()])


def count_shard(
    commit: Commit,
    documents: str,
    output: str,
    content: str | None = None,
    patterns: Sequence[str] = BLOOM,
    pieces_in_memory: int = PIECES_IN_MEMORY,
) -> dict[str, Any]:
    """Task: count one shard, whose xxh3-128 is `content` (None: not compared).

    Result: `Totals.facts`. Raises SourceError if the shard is unreadable, StaleDataError if its content is
    another.
    """
    if content is not None:
        check_content(documents, content, REMAKE_DOCUMENTS)
    counter = GroupCounter(patterns)
    with commit.file(output) as temporary, _runs(temporary) as runs:
        for batch in read_documents(documents):
            counter.add(batch)
            if len(counter.table) > pieces_in_memory or counter.table.arena_bytes > _BYTES_IN_MEMORY:
                runs.append(f"{temporary.removesuffix('.tmp')}-{len(runs)}.tmp")
                write_counts(runs[-1], counter.slices())
                counter.restart()
        streams = [*map(read_counts, runs), counter.slices()]
        write_counts(temporary, merge_counts(streams) if runs else streams[0])
    return counter.totals.facts()


def read_documents(path: str, columns: Sequence[str] = _COLUMNS) -> Iterator[pa.RecordBatch]:
    """The documents of a shard, batch by batch. Raises SourceError if it cannot be read or lacks a column."""
    try:
        with open_read(path) as handle:
            file = pq.ParquetFile(handle)
            missing = set(columns) - set(file.schema_arrow.names)
            if missing:
                raise SourceError(
                    f"this shard has no column {' and no column '.join(sorted(missing))}.", where=path,
                    hint="Give the documents that `python -m roots_pipeline run` wrote.",
                )  # fmt: skip
            yield from file.iter_batches(_BATCH, columns=list(columns))
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
