"""Files of blocks: Arrow record batches that many readers take a few of, each block with a checksum.

    blocks … | index | hash of the index, its length, mark

What tasks hand on through an exchange is read in pieces: the entries of some slices of the key space, the findings of
one shard. So the rows of such a file are in the order of a number (the slice, the shard), and the index says of each
block which numbers it holds. To open a file costs two small reads, a block one. A block is Arrow's own message of a
record batch, packed with LZ4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import xxhash

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.storage import open_read

_TAIL = struct.Struct("<16sQ8s")
_MARK = b"RBLOOM01"
# A block costs some 50 microseconds; whoever wants a part of it holds all of it in memory.
_BLOCK_BYTES = 64 << 10
_MOST_ROWS = 1 << 16


def write_blocks(path: str, rows: pa.Table, numbers: npt.NDArray[np.integer[Any]], **facts: Any) -> None:
    """Write rows in the order of `numbers`, one a row, ascending; `facts` (JSON) can be read again without the rows.

    Rows of one number stay together where they can, in blocks of about 64 KiB or more.
    """
    schema = rows.schema.remove_metadata()
    least = max(1, _BLOCK_BYTES * len(rows) // max(1, rows.nbytes))
    codec, blocks, at = pa.Codec("lz4"), [], 0
    with open(path, "wb") as out:
        for begin, end in _cut(numbers, least):
            (batch,) = rows.slice(begin, end - begin).combine_chunks().replace_schema_metadata().to_batches()
            message = batch.serialize()
            packed = codec.compress(message)
            span = [int(numbers[begin]), int(numbers[end - 1])]
            blocks.append([*span, at, packed.size, message.size, xxhash.xxh3_64_intdigest(packed)])
            at += out.write(packed)
        index = orjson.dumps({"schema": schema.serialize().to_pybytes().hex(), "blocks": blocks, **facts})
        out.write(index)
        out.write(_TAIL.pack(xxhash.xxh3_128_digest(index), len(index), _MARK))


def _cut(numbers: npt.NDArray[np.integer[Any]], least: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows for blocks."""
    begin = 0
    for end in [*(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]:
        if end - begin >= least or end == len(numbers):
            yield from pairwise([*range(begin, end, _MOST_ROWS), end])
            begin = end


class BlockFile:
    """A file of blocks, to be read as a context. Raises StorageError if it is damaged."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: BinaryIO = open_read(path)
        try:
            self._read_index()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> BlockFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _read_index(self) -> None:
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - _TAIL.size))
        tail = self._file.read(_TAIL.size)
        if len(tail) < _TAIL.size or tail[-len(_MARK) :] != _MARK:
            raise self._damaged()
        expected, length, _ = _TAIL.unpack(tail)
        if length > size - _TAIL.size:
            raise self._damaged()
        self._file.seek(size - _TAIL.size - length)
        index = self._file.read(length)
        if xxhash.xxh3_128_digest(index) != expected:
            raise self._damaged()
        self.facts: dict[str, Any] = orjson.loads(index)
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(self.facts.pop("schema"))))
        self._blocks: list[list[int]] = self.facts.pop("blocks")

    def read(self, first: int | None = None, last: int | None = None) -> pa.Table:
        """The blocks that may hold rows of the numbers from `first` to `last`, in order; with neither, all."""
        found = [
            self._block(*place) for low, high, *place in self._blocks
            if (last is None or low <= last) and (first is None or high >= first)
        ]
        return pa.Table.from_batches(found, self.schema)

    def _block(self, at: int, packed: int, size: int, expected: int) -> pa.RecordBatch:
        self._file.seek(at)
        data = self._file.read(packed)
        if xxhash.xxh3_64_intdigest(data) != expected:
            raise self._damaged()
        return pa.ipc.read_record_batch(pa.decompress(data, size, "lz4"), self.schema)

    def _damaged(self) -> StorageError:
        return StorageError("this file is damaged.", where=self.path)
