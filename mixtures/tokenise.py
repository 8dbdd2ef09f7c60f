"""Text to token ids: one corpus file becomes one Arrow file of pieces; a task function for any engine.

A piece is a record batch with the documents of one group (`source.language`), their ids and token ids. One
file a shard, so files stay few however many groups there are. Documents keep their order; memory holds one
batch. Every document ends with the end-of-text token and begins without one, as BLOOM's did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.join import PIECE_SCHEMA
from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.storage import open_read
from roots_pipeline.core.tasks import Commit
from tokenizer.content import REMAKE_DOCUMENTS, check_content
from tokenizer.encode import Encoder

UNKNOWN_LANGUAGE = "und"
_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How many token ids a tokenizer has, and which of them ends a document."""

    size: int
    end_of_text: int


def read_vocabulary(path: str) -> Vocabulary:
    """From a tokenizer.json. Raises TokenizerError if it is not of BLOOM's family or has no `</s>`."""
    encoder = Encoder.from_file(path)
    return Vocabulary(encoder.vocab_size, encoder.end_id)


def encode_shard(
    commit: Commit, *, documents: str, tokenizer: str, output: str, content: str | None = None
) -> dict[str, Any]:
    """Encode one corpus file, whose xxh3-128 is `content` (None: not compared).

    Returns for each group its batches in `output`, its documents and tokens. Raises SourceError if the file is
    unreadable, StaleDataError if its content is another.
    """
    if content is not None:
        check_content(documents, content, REMAKE_DOCUMENTS)
    encoder = Encoder.from_file(tokenizer)
    groups: dict[str, dict[str, Any]] = {}
    written = 0
    with (
        commit.file(output) as path,
        pa.OSFile(path, "wb") as out,
        pa.ipc.new_file(out, PIECE_SCHEMA) as writer,
    ):
        for batch in read_documents(documents, ["id", "text", "source", "language"]):
            ids, lengths = encoder.encode_column(batch.column("text"), append_eos=True)
            tokens = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]), pa.array(ids))
            for group, rows in _rows_by_group(batch):
                piece = pa.RecordBatch.from_arrays([batch.column("id"), tokens], schema=PIECE_SCHEMA)
                writer.write_batch(piece if rows is None else piece.take(rows))
                facts = groups.setdefault(group, {"batches": [], "documents": 0, "tokens": 0})
                facts["batches"].append(written)
                facts["documents"] += len(batch) if rows is None else len(rows)
                facts["tokens"] += int(lengths.sum() if rows is None else lengths[rows.to_numpy()].sum())
                written += 1
    return {"groups": groups}


def read_documents(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """These columns of a corpus file, batch by batch. Raises SourceError if it is unreadable."""
    try:
        with open_read(path) as handle:
            for batch in pq.ParquetFile(handle).iter_batches(_ROWS, columns=list(columns)):
                if batch.num_rows:
                    yield batch
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        raise SourceError(
            f"the corpus file cannot be read ({error}).",
            where=path,
            hint="Run `python -m roots_pipeline run` again.",
        ) from error


def group_names(batch: pa.RecordBatch) -> pa.Array:
    """`source.language` of each document of a batch."""
    language = pc.fill_null(batch.column("language"), UNKNOWN_LANGUAGE)
    return pc.binary_join_element_wise(batch.column("source"), language, ".")


def _rows_by_group(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array | None]]:
    """Each group of a batch, sorted by name, with its rows (None: all of them)."""
    names = group_names(batch).dictionary_encode()
    codes = names.indices.to_numpy()
    for code, group in sorted(enumerate(names.dictionary.to_pylist()), key=lambda item: str(item[1])):
        yield group, None if len(names.dictionary) == 1 else pa.array(np.flatnonzero(codes == code))
