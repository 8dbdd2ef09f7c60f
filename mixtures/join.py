"""The pieces of one group, in shard order, become its three files; a task function for any engine.

    <group>.bin, <group>.idx       token ids and where each document lies (`indexed`)
    <group>.documents.parquet      for each document its id, its sequence, token offset and tokens in the file,
                                   and the hash that decides on which side of a split it falls

A piece is a record batch of an Arrow file that `tokenise.encode_shard` wrote: `id` and `tokens` of
documents. Memory: one piece, and 8 bytes a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from mixtures.indexed import IntArray, indexed_writer
from mixtures.lock import SUFFIXES, probe
from roots_pipeline.core.tasks import Commit

PIECE_SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("tokens", pa.large_list(pa.int32()))])
_ROWS_OF_A_GROUP = 1 << 16
_LONGEST_NAME = 200
# Any constant: it makes the split independent of other hashes of the same ids.
_SPLIT_SEED = 0x5B117
# The table beside the files of a group.
DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("split_hash", pa.uint64(), nullable=False),
    ]
)


def file_name(group: str) -> str:
    """A group's name as a file name: anything but letters, digits and `-_.+~` becomes %XX.

    File systems allow 255 bytes, suffixes and temporary names included, so a long name keeps its beginning and
    ends in `=` and a hash of the whole; `=` is in no other name.
    """
    name = quote(group, safe="-_.+")
    if len(name) <= _LONGEST_NAME:
        return name
    ending = f"={xxhash.xxh3_128_hexdigest(group.encode())}"
    return name[: _LONGEST_NAME - len(ending)] + ending


def split_hashes(ids: pa.Array) -> npt.NDArray[np.uint64]:
    """A hash of each document id that decides its side (xxh3-64 with a seed of its own)."""
    hashes = (xxhash.xxh3_64_intdigest(name.as_py(), _SPLIT_SEED) for name in ids)
    return np.fromiter(hashes, np.uint64, len(ids))


def write_group(
    commit: Commit, *, pieces: Sequence[tuple[str, Sequence[int]]], prefix: str, dtype: str
) -> dict[str, Any]:
    """Join the pieces of one group. `pieces`: Arrow file and the numbers of its batches, in shard order.

    Returns documents, tokens, and size and hashes of the three files.
    """
    table_path = f"{prefix}.documents.parquet"
    with (
        commit.file(table_path) as temporary,
        pq.ParquetWriter(temporary, DOCUMENTS, compression="zstd") as table,
        indexed_writer(prefix, dtype, commit.file) as writer,
    ):
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for piece in _read_pieces(pieces):
            tokens = piece.column("tokens")
            lengths = np.diff(tokens.offsets.to_numpy())
            waiting.append(document_rows(piece.column("id"), lengths, writer.sequences, writer.tokens))
            writer.append(tokens.flatten().to_numpy(), lengths)
            rows += len(piece)
            if rows >= _ROWS_OF_A_GROUP:
                table.write_table(pa.Table.from_batches(waiting))
                waiting, rows = [], 0
        if waiting:
            table.write_table(pa.Table.from_batches(waiting))
        counts = {"documents": writer.sequences, "tokens": writer.tokens}
    files = {suffix: {**commit.files[prefix + suffix], "probe": probe(prefix + suffix)} for suffix in SUFFIXES}
    return {**counts, "files": files}


def _read_pieces(pieces: Sequence[tuple[str, Sequence[int]]]) -> Iterator[pa.RecordBatch]:
    for path, batches in pieces:
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            for number in batches:
                yield reader.get_batch(number)


def document_rows(ids: pa.Array, lengths: IntArray, sequence: int, offset: int) -> pa.RecordBatch:
    """Rows of the table of documents, from the sequence and the token offset of the first one on."""
    ends = offset + np.cumsum(lengths)
    return pa.RecordBatch.from_arrays(
        [
            ids,
            pa.array(np.arange(sequence, sequence + len(lengths))),
            pa.array(ends - lengths),
            pa.array(lengths.astype(np.int32)),
            pa.array(split_hashes(ids)),
        ],
        schema=DOCUMENTS,
    )
