"""The tasks of a corpus run: pure functions from files to files, the same for every engine.

`read_shard`     input files  -> stage file (text, measures) + quarantine
`judge_shard`    stage files (+ findings of the exchange before) -> stage file (what changed) + key blocks
`resolve_keys`   the key blocks of one partition, from all shards -> findings
`write_shard`    stage files (+ findings) -> documents (kept) + rejected, and the counts

Memory is bounded by a few batches, and by one partition of keys in `resolve_keys`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roots_pipeline.blocks import BlockFile, write_blocks
from roots_pipeline.columns import BatchWriter, ColumnView, noticing_damage
from roots_pipeline.core.documents import DOCUMENT_SCHEMA, IDENTITY, kept
from roots_pipeline.core.stages import Exchange, Map
from roots_pipeline.core.storage import hash_file
from roots_pipeline.core.tasks import Commit
from roots_pipeline.removal import VERDICT as REMOVED
from roots_pipeline.removal import Removal, blanked
from roots_pipeline.sources import read_files
from roots_pipeline.sources.base import FileSlice, Quarantined
from roots_pipeline.sources.files import check_unchanged

BATCH_BYTES = 8 << 20
EXCERPT_CHARACTERS = 1000
_QUARANTINE_ROWS = 1000
_QUARANTINE = pa.schema(
    [("file", pa.string()), ("record", pa.int64()), ("reason", pa.string()), ("excerpt", pa.string())]
)


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of one exchange, to be applied by the next step that reads a shard."""

    exchange: Exchange
    paths: tuple[str, ...]


def read_shard(commit: Commit, *, reader: Any, files: Sequence[FileSlice], limit: int | None, maps: Sequence[Map],
               output: str, quarantine: str) -> dict[str, Any]:
    """Read input files, or their first `limit` documents, and take all measures that need no other document."""
    first: str | None = None
    with ExitStack() as stack:
        out = stack.enter_context(BatchWriter(stack.enter_context(commit.file(output)), _after(maps, DOCUMENT_SCHEMA)))
        bad: BatchWriter | None = None
        waiting: list[Quarantined] = []
        for item in read_files(reader, files, BATCH_BYTES):
            if not isinstance(item, Quarantined):
                out.write(_run(maps, item if limit is None else item.slice(0, limit - out.rows)))
                if out.rows == limit:
                    break
                continue
            if bad is None:  # a file for the quarantine only where there is something to put into it
                bad = stack.enter_context(BatchWriter(
                    stack.enter_context(commit.file(quarantine)), _QUARANTINE, lasting=True))
                first = f"{item.file}:{item.record or ''} {item.reason}"
            waiting.append(item)
            if len(waiting) == _QUARANTINE_ROWS:
                bad.write(_quarantine_batch(waiting))
                waiting = []
        if bad is not None and waiting:
            bad.write(_quarantine_batch(waiting))
        for file in files:
            check_unchanged(file)
    return {"rows": out.rows, "bad": bad.rows if bad else 0, "first_bad": first}


def _quarantine_batch(items: Sequence[Quarantined]) -> pa.RecordBatch:
    columns = [pa.array([getattr(item, field.name) for item in items], field.type) for field in _QUARANTINE]
    return pa.RecordBatch.from_arrays(columns, schema=_QUARANTINE)


def judge_shard(commit: Commit, *, view: Sequence[str], shard: int, findings: Findings | None, maps: Sequence[Map],
                exchange: Exchange | None, slices: int, output: str | None, keys: str) -> dict[str, Any]:
    """Apply findings, run maps, and emit the keys of the next exchange, cut into `slices` of the key space.

    Only the columns that this changes are written, to `output` (None: there are none). `slices` in the result are the
    bytes of each slice.
    """
    changed = changed_columns(findings, maps)
    emitted: list[pa.Table] = []
    source = ColumnView(view)
    needed = _needed(findings, maps) | set(exchange.needs if exchange else ()) | set(changed)
    schema = _after(maps, pa.schema([field for field in source.schema if field.name in needed]))
    written = pa.schema([field for field in schema if field.name in changed])
    rows, sizes = 0, []
    with ExitStack() as stack:
        out = None
        if output is not None:
            out = stack.enter_context(BatchWriter(stack.enter_context(commit.file(output)), written))
        for batch, row in _stream(source, shard, needed, findings, maps):
            if exchange is not None:
                emitted.append(exchange.emit(batch, shard, row))
            if out is not None:
                out.write(batch.select(written.names))
            rows += batch.num_rows
    if exchange is not None:
        if not emitted:
            emitted = [exchange.emit(_empty(schema), shard, 0)]
        with commit.file(keys) as path:
            sizes = _write_slices(pa.concat_tables(emitted).combine_chunks(), slices, path)
    return {"rows": rows, "entries": sum(table.num_rows for table in emitted), "slices": sizes}


def resolve_keys(
    commit: Commit, *, exchange: Exchange, keys: Sequence[str], slices: tuple[int, int], output: str
) -> dict[str, Any]:
    """Let the entries of a range of slices meet; `findings` in the result names the content, not the file."""
    tables = [_read_slices(path, *slices) for path in keys]
    found = exchange.resolve(pa.concat_tables(tables).combine_chunks())
    found = found.take(pc.sort_indices(found, sort_keys=[("shard", "ascending"), ("row", "ascending")]))
    with commit.file(output) as path:
        write_blocks(path, found, found.column("shard").to_numpy())
        content = hash_file(path)
    return {"entries": sum(table.num_rows for table in tables), "findings": content, "rows": found.num_rows}


def publish_findings(commit: Commit, *, exchange: Exchange, findings: str, output: str) -> dict[str, Any]:
    """Write what of an exchange's findings is of interest to people."""
    with noticing_damage(findings), BlockFile(findings) as file:
        found = file.read()
    table = exchange.published(found)
    assert table is not None
    with commit.file(output) as path:
        pq.write_table(table, path, compression="zstd")
    return {"rows": table.num_rows, "files": _named(commit)}


def _named(commit: Commit) -> dict[str, Any]:
    """The files of a task as the manifest calls them: folder and name."""
    return {"/".join(path.split("/")[-2:]): entry for path, entry in commit.files.items()}


def write_shard(commit: Commit, *, view: Sequence[str], shard: int, findings: Findings | None, maps: Sequence[Map],
                schema: pa.Schema, documents: str, rejected: str, rejected_text: str,
                removal: Removal) -> dict[str, Any]:
    """Write kept and rejected documents, but for removed ones, and count all by language and verdict."""
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    source = ColumnView(view)
    document_schema = pa.schema([field for field in schema if field.name not in ("verdict", "cause")])
    with (commit.file(documents) as path, BatchWriter(path, document_schema, lasting=True) as good,
          commit.file(rejected) as other, BatchWriter(other, _rejected_schema(schema), lasting=True) as dropped):
        for batch, _ in _stream(source, shard, set(source.schema.names), findings, maps):
            batch = _conform(batch, schema)
            mask, gone = kept(batch), removal.rows_of(batch)
            _count(batch, mask & gone, counts, sizes)
            if (mask & ~gone).any():
                good.write(batch.filter(pa.array(mask & ~gone)).select(document_schema.names))
            if not mask.all():
                dropped.write(blanked(_shorten(batch.filter(pa.array(~mask)), rejected_text), gone[~mask]))
    rows = [[*key, counts[key], sizes[key]] for key in sorted(counts)]
    return {"kept": good.rows, "rejected": dropped.rows, "by_language_and_verdict": rows,
            "files": _named(commit)}


def changed_columns(findings: Findings | None, maps: Sequence[Map]) -> set[str]:
    """The columns that applying findings and running maps writes."""
    names = {name for stage in maps for name in stage.gives}
    return names | set(findings.exchange.gives) if findings else names


def _run(maps: Sequence[Map], batch: pa.RecordBatch) -> pa.RecordBatch:
    for stage in maps:
        batch = stage(batch)
    return batch


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _after(maps: Sequence[Map], schema: pa.Schema) -> pa.Schema:
    """The schema that maps make of a schema, found by running them on no rows."""
    return _run(maps, _empty(schema)).schema


def output_schema(chains: Sequence[Sequence[Map]]) -> pa.Schema:
    """One schema for all documents of a corpus: the document columns, then every measure that any chain takes."""
    fields = {field.name: field for field in DOCUMENT_SCHEMA}
    for maps in chains:
        for field in _after(maps, DOCUMENT_SCHEMA):
            if not field.name.startswith("_"):
                fields.setdefault(field.name, field)
    return pa.schema(list(fields.values()))


def _needed(findings: Findings | None, maps: Sequence[Map]) -> set[str]:
    names = {name for stage in maps for name in stage.needs}
    return names | (set(findings.exchange.needs) if findings else set()) | {"verdict", "cause"}


def _stream(source: ColumnView, shard: int, columns: set[str], findings: Findings | None,
            maps: Sequence[Map]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of a shard with findings applied and maps run, each with the number of its first row."""
    found = _findings_of(findings, shard) if findings else None
    row = 0
    for index in range(source.batches):
        batch = source.read(index, columns)
        if findings is not None and found is not None:
            begin, end = np.searchsorted(found.column("row").to_numpy(), [row, row + batch.num_rows])
            batch = findings.exchange.apply(batch, found.slice(begin, end - begin), row)
        yield _run(maps, batch), row
        row += batch.num_rows


def _findings_of(findings: Findings, shard: int) -> pa.Table:
    parts = []
    for path in findings.paths:
        with noticing_damage(path), BlockFile(path) as file:
            table = file.read(shard, shard)
        begin, end = np.searchsorted(table.column("shard").to_numpy(), [shard, shard + 1])
        parts.append(table.slice(begin, end - begin))
    table = pa.concat_tables(parts).combine_chunks()
    return table.take(pc.sort_indices(table, sort_keys=[("row", "ascending")]))


def _write_slices(entries: pa.Table, slices: int, path: str) -> list[int]:
    """Entries in the order of slices, ranges of the upper 32 bits of the key; returns the bytes of each slice."""
    place = _places(entries.column("key"), slices)
    order = np.argsort(place, kind="stable")
    ordered, place = entries.take(pa.array(order)).combine_chunks(), place[order]
    write_blocks(path, ordered, place, slices=slices)
    bounds = np.searchsorted(place, np.arange(slices + 1, dtype=np.uint64)).tolist()
    # Entries of one key may be far larger than others, so sizes are counted and not shared out.
    return [ordered.slice(begin, end - begin).nbytes if end > begin else 0 for begin, end in pairwise(bounds)]


def _read_slices(path: str, first: int, last: int) -> pa.Table:
    """The entries of the slices from `first` to before `last` of a file of keys."""
    with noticing_damage(path), BlockFile(path) as file:
        table, slices = file.read(first, last - 1), file.facts["slices"]
    begin, end = np.searchsorted(_places(table.column("key"), slices), np.array([first, last], np.uint64))
    return table.slice(begin, end - begin)


def _places(keys: pa.ChunkedArray, slices: int) -> npt.NDArray[np.uint64]:
    """The slice of each key."""
    upper: npt.NDArray[np.uint64] = keys.to_numpy() >> np.uint64(32)
    return (upper * np.uint64(slices)) >> np.uint64(32)


def _conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    have = set(batch.schema.names)
    columns = [batch.column(field.name).cast(field.type) if field.name in have else pa.nulls(batch.num_rows, field.type)
               for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rejected_schema(schema: pa.Schema) -> pa.Schema:
    first = [*IDENTITY, "verdict", "cause"]
    rest = [field.name for field in schema if field.name not in (*first, "text")]
    return pa.schema([schema.field(name) for name in (*first, *rest)] + [pa.field("text", pa.large_string())])


def _shorten(batch: pa.RecordBatch, rejected_text: str) -> pa.RecordBatch:
    text = batch.column("text")
    if rejected_text == "none":
        text = pa.nulls(batch.num_rows, pa.large_string())
    elif rejected_text == "excerpt":
        text = pc.utf8_slice_codeunits(text, 0, EXCERPT_CHARACTERS)
    schema = _rejected_schema(batch.schema)
    columns = [text if name == "text" else batch.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _count(batch: pa.RecordBatch, removed: npt.NDArray[np.bool_], counts: Counter[tuple[str, str]],
           sizes: Counter[tuple[str, str]]) -> None:
    lengths = pc.binary_length(batch.column("text")).to_pylist()
    verdicts = pc.if_else(pa.array(removed), REMOVED, batch.column("verdict")).to_pylist()
    for language, verdict, length in zip(batch.column("language").to_pylist(), verdicts, lengths, strict=True):
        counts[language or "", verdict or ""] += 1
        sizes[language or "", verdict or ""] += length
