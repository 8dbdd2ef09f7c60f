"""The records of the evaluation sets that a corpus was compared with: which record is which item.

The stage `decontaminate` notes beside each document the items that it holds, as `<set>/<item>`. Whoever has a record of
a set in hand (a task of an evaluation) has to know what it is called there. So the corpus step writes
RUN/corpus/evaluations.parquet: one row a record, in order of sets and records. Nobody needs to read the sets again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import fingerprint, hash_file, join, open_read

NAME = "evaluations.parquet"
MOST_ITEMS = 1000  # that a stage notes beside a document
RECORDS = pa.schema([
    pa.field("set", pa.string(), nullable=False),
    pa.field("item", pa.string(), nullable=False),
    pa.field("record", pa.binary(16), nullable=False),
])
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
_WITH_TEXT = (bytes, bytearray, Decimal, datetime, date, time, timedelta, np.generic)
_DEEPEST = 100  # orjson writes less deep than it reads


def record_key(record: Mapping[str, Any]) -> bytes:
    """xxh3-128 of a record as JSON, keys sorted: what two records that say the same have in common."""
    try:
        data = orjson.dumps(record, _as_json, _OPTIONS)
    except orjson.JSONEncodeError:
        data = orjson.dumps(_plain(record), _as_json, _OPTIONS)
    key: bytes = xxhash.xxh3_128_digest(data)
    return key


def _as_json(value: object) -> Any:
    """What JSON has no form for. Never an address in memory: equal files must give equal keys."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value) if isinstance(value, _WITH_TEXT) else type(value).__qualname__


def _plain(value: Any, depth: int = _DEEPEST) -> Any:
    """A value that orjson can write: large numbers as text, half characters replaced, and without what lies deeper."""
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(inner, depth - 1) for name, inner in value.items()} if depth else None
    if isinstance(value, list | tuple):
        return [_plain(inner, depth - 1) for inner in value] if depth else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64 else value


def content_fingerprint(files: Mapping[str, Mapping[str, Any]]) -> str:
    """The fingerprint of a corpus with these files (name -> hash): of all but the records of evaluation sets.

    Tokenizers and mixtures are made of documents. They stay fresh when a record changes that no document holds.
    """
    return fingerprint({name: entry["xxh3"] for name, entry in files.items() if name != NAME})


def find_records(corpus: str, manifest: Manifest, keys: Iterable[bytes]) -> list[tuple[str, str, bytes]]:
    """(set, item, record) of these records, in order of the file; the rest of it is not kept in memory.

    Raises StaleDataError if the corpus has no such file, or another one than its manifest lists.
    """
    if NAME not in manifest.files:
        raise StaleDataError(f"the corpus was made before the corpus step wrote {NAME}; run the corpus step again.",
                             where=corpus)
    path, wanted = join(corpus, NAME), pa.array(sorted(set(keys)), RECORDS.field("record").type)
    try:
        intact = hash_file(path) == manifest.files[NAME]["xxh3"]
    except FileNotFoundError:
        intact = False
    if not intact:
        raise StaleDataError(f"{NAME} is not what the corpus step wrote; run the corpus step again.", where=corpus)
    found: list[tuple[str, str, bytes]] = []
    with open_read(path) as handle:
        for batch in pq.ParquetFile(handle).iter_batches(columns=RECORDS.names, use_threads=False):
            rows = batch.filter(pc.is_in(batch.column("record"), value_set=wanted))
            found.extend(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return found
