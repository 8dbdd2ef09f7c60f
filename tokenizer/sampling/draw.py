"""What happens to the documents of one shard: some are drawn, lines seen before are dropped, then whole articles.

    draw_documents ──▶ drop_lines ──▶ drop_articles        each batch by batch

A document is drawn if a hash of its id (and a seed) falls below the ratio of its group: without replacement, and
whatever the order and the number of workers. Lines count as equal without the white space around them; blank lines go,
the first of equal lines in the whole corpus stays, documents of exempt sources (code) keep all their lines. Articles
are equal if they are without white space. BLOOM did the same, because whole URLs and headers had become tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.tasks import Commit
from roots_pipeline.text.hashes import hash_texts, hash_texts_without, white_space
from tokenizer.content import REMAKE_DOCUMENTS, check_content
from tokenizer.count import groups_of, read_documents
from tokenizer.counts_file import Group
from tokenizer.sampling.first_of_equals import Hashes, Int64, later_positions, write_keys

_COLUMNS = ("id", "text", "language", "source")
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Draw:
    """What decides about the documents of a shard. `ratios`: by group; `exempt`: sources whose lines stay;
    `lines`: files of lines that came later than an equal one (None: lines stay); `shard`: its number there."""

    documents: str
    content: str | None
    shard: int
    seed: int
    ratios: Mapping[Group, float]
    exempt: Sequence[str] = ()
    lines: Sequence[str] | None = None
    articles: Sequence[str] | None = None


@dataclass(slots=True)
class _Lines:
    """Lines of a batch: all of them, how many each text has, which must be looked at, which are blank."""

    all: pa.Array
    numbers: Int64
    keyed: npt.NDArray[np.bool_]
    dropped: npt.NDArray[np.bool_]
    stripped: pa.Array = field(repr=False)


def draw_documents(draw: Draw) -> Iterator[pa.RecordBatch]:
    """The documents that are drawn. Raises SourceError, StaleDataError."""
    if draw.content is not None:
        check_content(draw.documents, draw.content, REMAKE_DOCUMENTS)
    for batch in read_documents(draw.documents, _COLUMNS):
        names, local = groups_of(batch)
        limits = np.array([draw.ratios.get(name, 0.0) for name in names], np.float64)[local]
        hashes = hash_texts(*text_buffers(batch.column("id")))[:, 0]
        chance = ((hashes ^ np.uint64(draw.seed)) * _ODD >> np.uint64(11)).astype(np.float64) / 2.0**53
        yield batch.filter(pa.array(chance < limits))


def drop_lines(batches: Iterable[pa.RecordBatch], draw: Draw) -> Iterator[pa.RecordBatch]:
    """The same documents without blank lines, without lines that came later than an equal one, and without those
    documents that have no text or none left."""
    if draw.lines is None:
        yield from map(_with_text, batches)
        return
    later = later_positions(draw.lines, draw.shard)
    seen = 0
    for batch in batches:
        lines = _lines_of(batch, draw.exempt)
        keyed = np.flatnonzero(lines.keyed)
        first, last = np.searchsorted(later, (seen, seen + len(keyed)))
        lines.dropped[keyed[later[first:last] - seen]] = True
        seen += len(keyed)
        yield _with_text(with_columns(batch, {"text": _joined(lines)}))


def drop_articles(batches: Iterable[pa.RecordBatch], draw: Draw) -> Iterator[pa.RecordBatch]:
    """The same documents without articles that came later than an equal one."""
    if draw.articles is None:
        yield from batches
        return
    later = later_positions(draw.articles, draw.shard)
    seen = 0
    for batch in batches:
        stays = np.ones(len(batch), np.bool_)
        first, last = np.searchsorted(later, (seen, seen + len(batch)))
        stays[later[first:last] - seen] = False
        seen += len(batch)
        yield batch.filter(pa.array(stays))


def write_line_keys(commit: Commit, draw: Draw, partitions: int, output: str) -> dict[str, Any]:
    """Task: the keys of the lines of a shard's drawn documents. Result: `lines`."""
    keys = [hash_texts(*text_buffers(lines.stripped)) for batch in draw_documents(draw)
            if (lines := _lines_of(batch, draw.exempt))]  # fmt: skip
    return _write(commit, keys, partitions, output, "lines")


def write_article_keys(commit: Commit, draw: Draw, partitions: int, output: str) -> dict[str, Any]:
    """Task: the keys of a shard's drawn documents, after lines were dropped. Result: `articles`."""
    batches = drop_lines(draw_documents(draw), draw)
    keys = [hash_texts_without(*text_buffers(batch.column("text")), white_space(), False) for batch in batches]
    return _write(commit, keys, partitions, output, "articles")


def write_sample(commit: Commit, draw: Draw, output: str) -> dict[str, Any]:
    """Task: what is left of a shard, as documents to count. Result: `documents` and `bytes`."""
    documents = size = 0
    with commit.file(output) as path:
        schema = pa.schema([(name, pa.large_string() if name == "text" else pa.string()) for name in _COLUMNS])
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in drop_articles(drop_lines(draw_documents(draw), draw), draw):
                writer.write_batch(batch.cast(schema))
                documents += len(batch)
                size += int(text_buffers(batch.column("text"))[1][[0, -1]] @ np.array([-1, 1]))
    return {"documents": documents, "bytes": size}


def _write(commit: Commit, keys: list[Hashes], partitions: int, output: str, name: str) -> dict[str, Any]:
    together = np.concatenate([np.empty((0, 2), np.uint64), *keys])
    with commit.file(output) as path:
        write_keys(path, together, partitions)
    return {name: len(together)}


def _with_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.greater(pc.binary_length(batch.column("text")), 0))


def _lines_of(batch: pa.RecordBatch, exempt: Sequence[str]) -> _Lines:
    lists = pc.split_pattern(batch.column("text").cast(pa.large_string()), "\n")
    numbers = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    lines = lists.flatten()
    stripped = pc.utf8_trim_whitespace(lines)
    blank = pc.equal(pc.binary_length(stripped), 0).to_numpy(zero_copy_only=False)
    free = pc.is_in(batch.column("source"), pa.array(exempt, pa.string())).to_numpy(zero_copy_only=False)
    free = np.repeat(free, numbers)
    keyed = ~blank & ~free
    return _Lines(lines, numbers, keyed, blank & ~free, stripped.filter(pa.array(keyed)))


def _joined(lines: _Lines) -> pa.Array:
    stays = ~lines.dropped
    ends = np.cumsum(lines.numbers)
    kept = np.concatenate([[0], np.cumsum(stays)])[np.concatenate([[0], ends])].astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(kept), lines.all.filter(pa.array(stays)))
    return pc.binary_join(lists, pa.scalar("\n", pa.large_string()))
