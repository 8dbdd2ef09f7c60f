"""The count table: (language, source, piece, count), sorted by the first three, in memory and as Parquet.

Pieces are bytes, not text: nothing promises that a corpus is valid UTF-8 once it has been cut. The order makes
equal counts give equal files, and lets any number of tables be merged as streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.core.errors import StorageError, TokenizerError
from roots_pipeline.core.storage import open_read
from tokenizer.piece_table import PieceTable

COUNT_SCHEMA = pa.schema(
    [
        pa.field("language", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("piece", pa.binary(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
    ]
)
_KEYS = ["language", "source", "piece"]
_ORDER = [(name, "ascending") for name in _KEYS]
_ROWS = 1 << 16  # of a slice and of a row group
_LONGEST_PIECE = 2**31 - 1  # Arrow's `binary` has 32-bit offsets


Group = tuple[str, str]  # language and source


def sorted_counts(counted: PieceTable, names: Sequence[Group]) -> Iterator[pa.Table]:
    """The table's content in order, in slices; group g of `counted` is names[g]."""
    arena, starts, lengths, groups, counts = counted.entries()
    if len(counted) and int(lengths.max()) > _LONGEST_PIECE:
        raise TokenizerError(
            f"a piece without any space or punctuation has {int(lengths.max()):,} bytes; a table holds up to 2^31.",
            hint="Drop such documents from the corpus.",
        )
    offsets = np.append(starts, counted.arena_bytes)
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(counted), [None, pa.py_buffer(offsets), pa.py_buffer(arena[: counted.arena_bytes])]
    )
    alphabetical = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), np.int32)
    ranks[alphabetical] = np.arange(len(names), dtype=np.int32)
    table = pa.table({"group": ranks[groups], "piece": pieces, "count": np.ascontiguousarray(counts)})
    order = pc.sort_indices(table, sort_keys=[("group", "ascending"), ("piece", "ascending")])
    languages, sources = (pa.array([names[index][side] for index in alphabetical], pa.string()) for side in (0, 1))
    for start in range(0, len(table), _ROWS):
        part = table.take(order.slice(start, _ROWS))
        columns = [languages.take(part["group"]), sources.take(part["group"]), part["piece"], part["count"]]
        yield pa.Table.from_arrays(columns, COUNT_SCHEMA.names).cast(COUNT_SCHEMA)


def write_counts(path: str, slices: Iterable[pa.Table]) -> int:
    """Write slices of a sorted table to a local path; returns the number of rows."""
    rows = 0
    with pq.ParquetWriter(path, COUNT_SCHEMA, compression="zstd") as writer:
        for part in _even_slices(slices):
            writer.write_table(part)
            rows += len(part)
    return rows


def _even_slices(slices: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, _ROWS at a time: equal tables give equal bytes however they were cut."""
    waiting = COUNT_SCHEMA.empty_table()
    for part in slices:
        waiting = pa.concat_tables([waiting, part]).combine_chunks()
        while len(waiting) >= _ROWS:
            yield waiting.slice(0, _ROWS)
            waiting = waiting.slice(_ROWS)
    if len(waiting):
        yield waiting


def read_counts(path: str) -> Iterator[pa.Table]:
    """The slices of a count table in order. Raises StorageError if the file is not one."""
    with open_read(path) as handle:
        try:
            file = pq.ParquetFile(handle)
        except pa.ArrowInvalid as error:
            raise StorageError(
                f"not a Parquet file ({error}).", where=path, hint="Delete it and count again."
            ) from error
        if not file.schema_arrow.equals(COUNT_SCHEMA):
            raise StorageError(
                f"not a table of counts: its columns are {', '.join(file.schema_arrow.names)}.", where=path,
                hint="Give the counts.parquet that `python -m tokenizer count` wrote.",
            )  # fmt: skip
        for batch in file.iter_batches(_ROWS):
            yield pa.Table.from_batches([batch])


def sort_counts(table: pa.Table) -> pa.Table:
    """A table with equal (language, source, piece) rows added up, sorted."""
    summed = table.group_by(_KEYS, use_threads=False).aggregate([("count", "sum")])
    return summed.rename_columns(COUNT_SCHEMA.names).sort_by(_ORDER).cast(COUNT_SCHEMA)


def group_numbers(table: pa.Table) -> tuple[list[Group], npt.NDArray[np.int64]]:
    """The groups (language, source) of a slice, and the number of each row's group."""
    languages, sources = (table[name].combine_chunks().dictionary_encode() for name in ("language", "source"))
    if not len(table):
        return [], np.empty(0, np.int64)
    width = len(sources.dictionary)
    joint = languages.indices.to_numpy().astype(np.int64) * width + sources.indices.to_numpy()
    found, numbers = np.unique(joint, return_inverse=True)
    names = languages.dictionary.to_pylist(), sources.dictionary.to_pylist()
    return [(names[0][number // width], names[1][number % width]) for number in found.tolist()], numbers
