"""One group without some of its documents: new files beside the old ones, which are not touched.

Two ways. `rewrite` leaves the documents out: sequences after them move up. `mask` keeps every position: the tokens
of a document become the padding token, its last token (end of text) stays, and its id becomes `removed:<sequence>`.
So with `mask` the order of samples, and every sample that did not hold such a document, stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mixtures.indexed import IndexedReader, indexed_writer
from mixtures.join import DOCUMENTS
from mixtures.lock import SUFFIXES, probe
from roots_pipeline.core.tasks import Commit

Way = Literal["rewrite", "mask"]
_ROWS = 1 << 16


def masked_id(sequence: int) -> str:
    """What a masked document is called in the table of documents."""
    return f"removed:{sequence}"


def patch_group(prefix: str, target: str, gone: Sequence[int], way: Way, mask_token: int) -> dict[str, Any]:
    """Write the group at `prefix` to `target` without the sequences `gone` (rising); the facts `write_group` gives.

    A masked document keeps its number of tokens. Raises StorageError if the old files are broken.
    """
    reader = IndexedReader(prefix)
    commit = Commit()
    kept = np.ones(len(reader), bool)
    kept[np.asarray(gone, np.int64)] = False
    with indexed_writer(target, reader.dtype, commit.file) as writer:
        for first, last, stays in _runs(kept):
            lengths = reader.lengths[first:last]
            begin = int(reader.offsets[first]) // reader.dtype.itemsize
            tokens = reader.tokens[begin : begin + int(np.sum(lengths, dtype=np.int64))]
            if not stays and way == "rewrite":
                continue
            writer.append(tokens if stays else _masked(tokens, lengths, mask_token), lengths)
        counts = {"documents": writer.sequences, "tokens": writer.tokens}
    _patch_table(f"{prefix}.documents.parquet", f"{target}.documents.parquet", kept, way, commit)
    files = {suffix: {**commit.files[target + suffix], "probe": probe(target + suffix)} for suffix in SUFFIXES}
    return {**counts, "files": files}


def _runs(kept: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, bool]]:
    """(first, end, stays) of each run of sequences with the same fate."""
    borders = [0, *(np.flatnonzero(np.diff(kept)) + 1).tolist(), len(kept)]
    for first, last in pairwise(borders):
        if last > first:
            yield first, last, bool(kept[first])


def _masked(tokens: npt.NDArray[Any], lengths: npt.NDArray[np.int32], mask_token: int) -> npt.NDArray[Any]:
    out = np.full_like(tokens, mask_token)
    ends = np.cumsum(lengths, dtype=np.int64)[lengths > 0] - 1
    out[ends] = tokens[ends]
    return out


def _patch_table(source: str, target: str, kept: npt.NDArray[np.bool_], way: Way, commit: Commit) -> None:
    sequence, offset = 0, 0
    with (
        pq.ParquetFile(source) as file,
        commit.file(target) as temporary,
        pq.ParquetWriter(temporary, DOCUMENTS, compression="zstd") as out,
    ):
        for batch in file.iter_batches(_ROWS):
            rows = kept[batch.column("sequence").to_numpy()]
            if way == "mask":
                names = [
                    name if stays else masked_id(number)
                    for name, number, stays in zip(
                        batch.column("id").to_pylist(), batch.column("sequence").to_pylist(), rows, strict=True
                    )
                ]
                out.write_batch(batch.set_column(0, DOCUMENTS.field("id"), pa.array(names, pa.string())))
                continue
            left = batch.filter(pa.array(rows))
            tokens = left.column("tokens").to_numpy()
            ends = offset + np.cumsum(tokens, dtype=np.int64)
            columns = {
                "id": left.column("id"),
                "sequence": pa.array(np.arange(sequence, sequence + len(left))),
                "offset": pa.array(ends - tokens),
                "tokens": left.column("tokens"),
                "split_hash": left.column("split_hash"),
            }
            if len(left):
                out.write_batch(pa.RecordBatch.from_pydict(columns, DOCUMENTS))
                sequence, offset = sequence + len(left), int(ends[-1])
