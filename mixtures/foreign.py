"""Megatron data sets that others encoded, as groups of a mixture.

In: the path of a `.bin/.idx` pair without its suffix. Out: links to both files in the mixture folder and a table of
documents beside them, marked as foreign: sequence n is called `<group>/<n>`. Nothing is copied; token ids are checked
against the vocabulary once, and whether they mean the same only the user can know. A foreign sequence need not end
with the end-of-text token, so `verify` does not ask for it, and `remove` leaves foreign groups alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixtures.indexed import IndexedReader, paths
from mixtures.join import DOCUMENTS, document_rows, file_name
from mixtures.lock import SUFFIXES, FileFacts, probe
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.storage import commit_file, exists, fingerprint, hash_file, join, read_json, write_json

_MARK = b"foreign"
_ROWS = 1 << 16


def is_foreign(prefix: str) -> bool:
    """Whether a group was encoded by others."""
    return _MARK in (pq.read_schema(f"{prefix}.documents.parquet").metadata or {})


def adopt_groups(foreign: Mapping[str, str], known: Mapping[str, Any], folder: str, vocab: int) -> dict[str, Any]:
    """Link every foreign data set into the folder; facts by group, as `write_group` gives them.

    Raises MixtureError for a name without a language or one that the corpus uses, and for ids beyond the vocabulary;
    StorageError if the files are no such pair.
    """
    found = {}
    for name, source in foreign.items():
        if not all(name.rpartition(".")[::2]):
            raise MixtureError(f"'{name}' is no name of a group.", hint="Call it source.language, such as theirs.en.")
        if name in known:
            raise MixtureError(f"the corpus has a group '{name}', too.", hint="Give the foreign data another name.")
        found[name] = _adopt(name, os.path.abspath(source), join(folder, file_name(name)), folder, vocab)
    return found


def _adopt(name: str, source: str, prefix: str, folder: str, vocab: int) -> dict[str, Any]:
    reader = IndexedReader(source)
    # The probe stands for the content: hashing terabytes at every call would be no use.
    mark = fingerprint([1, source, vocab, [[os.path.getsize(path), probe(path)] for path in paths(source)]])
    note = join(folder, ".work", "foreign", f"{file_name(name)}.json")
    if exists(note):
        facts = read_json(note)
        if facts.pop("fingerprint", None) == mark and _linked(prefix, source) and _same(prefix, facts):
            return dict(facts)
    reader.check()
    _check_ids(reader, vocab)
    for suffix in (".bin", ".idx"):
        temporary = f"{prefix}{suffix}.link"
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.symlink(source + suffix, temporary)
        os.replace(temporary, prefix + suffix)
    _write_table(name, reader, f"{prefix}.documents.parquet")
    files = {
        suffix: asdict(FileFacts(os.path.getsize(prefix + suffix), hash_file(prefix + suffix), probe(prefix + suffix)))
        for suffix in SUFFIXES
    }
    facts = {"documents": len(reader), "tokens": len(reader.tokens), "files": files}
    write_json(note, {**facts, "fingerprint": mark})
    return facts


def _linked(prefix: str, source: str) -> bool:
    return all(os.path.islink(prefix + s) and os.readlink(prefix + s) == source + s for s in (".bin", ".idx"))


def _same(prefix: str, facts: Mapping[str, Any]) -> bool:
    table = f"{prefix}.documents.parquet"
    return os.path.exists(table) and probe(table) == facts["files"][".documents.parquet"]["probe"]


def _check_ids(reader: IndexedReader, vocab: int) -> None:
    for start in range(0, len(reader.tokens), 1 << 24):
        block = reader.tokens[start : start + (1 << 24)]
        if int(block.min()) < 0 or int(block.max()) >= vocab:
            bad = start + int(np.argmax((block < 0) | (block >= vocab)))
            raise MixtureError(
                f"token {bad} is {int(reader.tokens[bad])}, the vocabulary has {vocab}.",
                where=reader.bin_path,
                hint="This data was encoded with another tokenizer.",
            )


def _write_table(name: str, reader: IndexedReader, path: str) -> None:
    schema = DOCUMENTS.with_metadata({_MARK: b"true"})
    with commit_file(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as out:
        offset = 0
        for first in range(0, len(reader), _ROWS):
            lengths = reader.lengths[first : first + _ROWS]
            ids = pa.array([f"{name}/{number}" for number in range(first, first + len(lengths))], pa.string())
            out.write_batch(document_rows(ids, lengths, first, offset).cast(schema))
            offset += int(np.sum(lengths, dtype=np.int64))
