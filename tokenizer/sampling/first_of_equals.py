"""Of things that are equal anywhere in a corpus, the first: duplicates found in parts that fit into memory.

    shard ──write_keys──▶ keys, cut into partitions by their leading bits
    partition of all shards ──find_later──▶ positions in each shard that came later than an equal one
    shard ──later_positions──▶ what to leave out

A key is a 128-bit hash, so equal means equal but for a chance in 2^128. First is: in the shard of lower number, then at
the lower position; neither workers nor the number of partitions can change that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.storage import open_read
from roots_pipeline.core.tasks import Commit

Int64 = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_KEYS = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("position", pa.int64())])
_LATER = pa.schema([("position", pa.int64())])
_TEXT_OF_A_PARTITION = 1 << 28  # bytes; some ten megabytes of keys


def partitions_for(size: int) -> int:
    """Into how many partitions (a power of two) the keys of `size` bytes of text are cut."""
    number = 1
    while number * _TEXT_OF_A_PARTITION < size and number < 1024:
        number *= 2
    return number


def write_keys(path: str, keys: Hashes, partitions: int) -> None:
    """Write keys (n, 2), whose positions are 0 to n - 1, as one record batch a partition."""
    bits = partitions.bit_length() - 1
    part = (keys[:, 0] >> np.uint64(63)) >> np.uint64(1) if bits == 0 else keys[:, 0] >> np.uint64(64 - bits)
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(partitions + 1)).tolist()
    with pa.OSFile(path, "wb") as out, pa.ipc.new_file(out, _KEYS) as writer:
        for number in range(partitions):
            rows = order[bounds[number] : bounds[number + 1]]
            columns = [pa.array(keys[rows, 0]), pa.array(keys[rows, 1]), pa.array(rows)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_KEYS))


def find_later(commit: Commit, inputs: Sequence[str], partition: int, output: str) -> dict[str, Any]:
    """Task: of one partition of the keys of all shards, the positions that are not the first of their key.

    Writes one record batch a shard. Result: `keys` and `later`, how many.
    """
    batches = [_read_batch(path, partition) for path in inputs]
    shards = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    high, low, positions = (
        np.concatenate([batch.column(name).to_numpy() for batch in batches]) for name in _KEYS.names
    )
    order = np.lexsort((positions, shards, low, high))
    high, low = high[order], low[order]
    later = order[1:][(high[1:] == high[:-1]) & (low[1:] == low[:-1])]
    later = later[np.lexsort((positions[later], shards[later]))]
    bounds = np.searchsorted(shards[later], np.arange(len(batches) + 1)).tolist()
    with commit.file(output) as path, pa.OSFile(path, "wb") as out, pa.ipc.new_file(out, _LATER) as writer:
        for number in range(len(batches)):
            found = positions[later[bounds[number] : bounds[number + 1]]]
            writer.write_batch(pa.RecordBatch.from_arrays([pa.array(found)], schema=_LATER))
    return {"keys": len(order), "later": len(later)}


def later_positions(inputs: Sequence[str], shard: int) -> Int64:
    """The positions of one shard that `find_later` found in any partition, ascending."""
    return np.sort(np.concatenate([np.empty(0, np.int64), *_positions(inputs, shard)]))


def _positions(inputs: Sequence[str], shard: int) -> Iterator[Int64]:
    for path in inputs:
        yield _read_batch(path, shard).column("position").to_numpy()


def _read_batch(path: str, number: int) -> pa.RecordBatch:
    with open_read(path) as handle:
        return pa.ipc.open_file(pa.PythonFile(handle, mode="r")).get_batch(number)
