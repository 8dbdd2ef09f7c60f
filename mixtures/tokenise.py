"""Text to token ids: the two task functions of the step, to be run by any engine.

`encode_shard`  one corpus Parquet file -> one Arrow file of pieces: each record batch holds the documents
of one
                group (`source.language`), with id and token ids. Files stay few however many groups there
                are.
`write_group`   the pieces of one group, in shard order -> `<group>.bin`, `<group>.idx` and
                `<group>.documents.parquet` (id, sequence, offset and tokens in the file, hash for the split).

Documents keep their order: shards by name, rows by position. Both hold one batch in memory, and
`write_group` 8 bytes a document. Every document ends with the end-of-text token and begins without one, as
BLOOM's did.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.indexed import indexed_writer
from mixtures.lock import SUFFIXES, probe
from mixtures.splits import split_hashes
from roots_pipeline.core.errors import SourceError, TokenizerError
from roots_pipeline.core.storage import is_remote, open_read, read_json
from roots_pipeline.core.tasks import Commit
from tokenizer.encode import Encoder

END_OF_TEXT = "</s>"
UNKNOWN_LANGUAGE = "und"
_ROWS = 1024
_ROWS_OF_A_GROUP = 1 << 16
_DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("split_hash", pa.uint64(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How many token ids a tokenizer has, and which of them ends a document."""

    size: int
    end_of_text: int


def read_vocabulary(path: str) -> Vocabulary:
    """From a tokenizer.json. Raises TokenizerError if it has no `</s>`."""
    value = read_json(path)
    added = {token["content"]: int(token["id"]) for token in value.get("added_tokens", [])}
    ids = {**value["model"]["vocab"], **added}
    if END_OF_TEXT not in ids:
        raise TokenizerError(
            f"it has no token {END_OF_TEXT}.",
            where=path,
            hint="A document must end with it; train a tokenizer with this special token.",
        )
    return Vocabulary(max(ids.values()) + 1, ids[END_OF_TEXT])


def file_name(group: str) -> str:
    """A group's name as a file name: anything but letters, digits and `-_.+` becomes %XX."""
    return quote(group, safe="-_.+")


def encode_shard(commit: Commit, *, documents: str, tokenizer: str, output: str) -> dict[str, Any]:
    """Encode one corpus file. Returns for each group its batches in `output`, its documents and tokens."""
    encoder = Encoder.from_file(tokenizer)
    schema = pa.schema([pa.field("id", pa.string()), pa.field("tokens", pa.large_list(pa.int32()))])
    groups: dict[str, dict[str, Any]] = {}
    written = 0
    with (
        commit.file(output) as path,
        pa.OSFile(path, "wb") as out,
        pa.ipc.new_file(out, schema) as writer,
    ):
        for batch in _read_documents(documents):
            ids, lengths = encoder.encode_column(batch.column("text"), append_eos=True)
            tokens = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]), pa.array(ids))
            for group, rows in _rows_by_group(batch):
                piece = pa.RecordBatch.from_arrays([batch.column("id"), tokens], schema=schema)
                writer.write_batch(piece if rows is None else piece.take(rows))
                facts = groups.setdefault(group, {"batches": [], "documents": 0, "tokens": 0})
                facts["batches"].append(written)
                facts["documents"] += len(batch) if rows is None else len(rows)
                facts["tokens"] += int(lengths.sum() if rows is None else lengths[rows.to_numpy()].sum())
                written += 1
    return {"groups": groups}


def _read_documents(path: str) -> Iterator[pa.RecordBatch]:
    try:
        with open_read(path) as handle:
            for batch in pq.ParquetFile(handle).iter_batches(
                _ROWS, columns=["id", "text", "source", "language"]
            ):
                if batch.num_rows:
                    yield batch
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        raise SourceError(
            f"the corpus file cannot be read ({error}).",
            where=path,
            hint="Run `python -m roots_pipeline run` again.",
        ) from error


def _rows_by_group(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array | None]]:
    """Each group of a batch, sorted by name, with its rows (None: all of them)."""
    language = pc.fill_null(batch.column("language"), UNKNOWN_LANGUAGE)
    names = pc.binary_join_element_wise(batch.column("source"), language, ".").dictionary_encode()
    codes = names.indices.to_numpy()
    for code, group in sorted(enumerate(names.dictionary.to_pylist()), key=lambda item: str(item[1])):
        yield group, None if len(names.dictionary) == 1 else pa.array(np.flatnonzero(codes == code))


def write_group(
    commit: Commit, *, pieces: Sequence[tuple[str, Sequence[int]]], prefix: str, dtype: str
) -> dict[str, Any]:
    """Join the pieces of one group. `pieces`: Arrow file and the numbers of its batches, in shard order.

    Returns documents, tokens, and size and hashes of the three files.
    """
    table_path = f"{prefix}.documents.parquet"
    with (
        commit.file(table_path) as temporary,
        pq.ParquetWriter(temporary, _DOCUMENTS, compression="zstd") as table,
        indexed_writer(prefix, dtype, commit.file) as writer,
    ):
        waiting: list[pa.RecordBatch] = []
        for piece in _read_pieces(pieces):
            tokens = piece.column("tokens")
            lengths = np.diff(tokens.offsets.to_numpy())
            waiting.append(_document_rows(piece.column("id"), lengths, writer.sequences, writer.tokens))
            writer.append(tokens.flatten().to_numpy(), lengths)
            if sum(map(len, waiting)) >= _ROWS_OF_A_GROUP:
                table.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            table.write_table(pa.Table.from_batches(waiting))
        counts = {"documents": writer.sequences, "tokens": writer.tokens}
    files = {
        suffix: {**commit.files[prefix + suffix], "probe": probe(prefix + suffix)} for suffix in SUFFIXES
    }
    return {**counts, "files": files}


def _read_pieces(pieces: Sequence[tuple[str, Sequence[int]]]) -> Iterator[pa.RecordBatch]:
    for path, batches in pieces:
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(
                open_read(path) if is_remote(path) else pa.memory_map(os.fspath(path))
            )
            reader = pa.ipc.open_file(source)
            for number in batches:
                yield reader.get_batch(number)


def _document_rows(
    ids: pa.Array, lengths: np.ndarray[Any, Any], sequence: int, offset: int
) -> pa.RecordBatch:
    ends = offset + np.cumsum(lengths)
    return pa.RecordBatch.from_arrays(
        [
            ids,
            pa.array(np.arange(sequence, sequence + len(lengths))),
            pa.array(ends - lengths),
            pa.array(lengths.astype(np.int32)),
            pa.array(split_hashes(ids)),
        ],
        schema=_DOCUMENTS,
    )
