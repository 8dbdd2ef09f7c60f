"""Which of several documents is the better one: its source's place in `prefer`, then its id.

A rank never depends on the order in which documents arrive, so shards, workers and engines cannot change who survives.
Documents with the same rank and id (ids should be unique) fall back on shard and row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_ORDER = [(name, "ascending") for name in ("rank", "id", "shard", "row")]


def source_ranks(sources: pa.Array, prefer: Sequence[str]) -> pa.Array:
    """int32 ranks of sources: the place in `prefer`; sources not named there rank behind, all alike."""
    place = {name: rank for rank, name in enumerate(prefer)}
    return pa.array([place.get(name, len(place)) for name in sources.to_pylist()], pa.int32())


def number_documents(documents: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of documents, best first, for rows (rank, id, shard, row) that may name a document more than once.

    Returns the number of each row, and a row that names each document.
    """
    order = pc.sort_indices(documents, sort_keys=_ORDER).to_numpy()
    shard, row = documents.column("shard").to_numpy()[order], documents.column("row").to_numpy()[order]
    new = np.ones(len(order), bool)
    new[1:] = (shard[1:] != shard[:-1]) | (row[1:] != row[:-1])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers, order[new].astype(np.int64)
