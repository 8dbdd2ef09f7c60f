"""Take documents out of a finished corpus, by id or URL, for good: later runs of the recipe leave them out, too.

    python -m roots_pipeline remove --ids FILE --run RUN      one id (or URL) a line
    python -m roots_pipeline remove --urls FILE --run RUN

`removed.json` in the corpus folder keeps what was asked for; the `write` step reads it. A document that is named there
is not in `documents/` and is counted with the verdict `removed`; of one that was rejected the table keeps id, verdict
and measures only. What was dropped for its sake stays dropped: a copy of a removed document must not take its place.
Intermediate files that hold its text are deleted; the sources themselves are not touched. `python -m mixtures remove`
carries the removal on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.columns import BatchWriter, open_parquet
from roots_pipeline.core.errors import RecipeError, StorageError
from roots_pipeline.core.evaluation_records import content_fingerprint
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest, write_manifest
from roots_pipeline.core.storage import (
    commit_file,
    hash_file,
    is_remote,
    join,
    list_files,
    lock_folder,
    read_json,
    size_of,
    write_json,
)

VERDICT = "removed"
_CONTENT = ("text", "url", "metadata", "license")


@dataclass(frozen=True, slots=True)
class Removal:
    """The ids and URLs that a corpus must not hold."""

    ids: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ids or self.urls)

    def rows_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows are to be left out."""
        gone = np.zeros(batch.num_rows, bool)
        for name, wanted in (("id", self.ids), ("url", self.urls)):
            if wanted:
                found = pc.is_in(batch.column(name), pa.array(wanted, pa.string()))
                gone |= found.to_numpy(zero_copy_only=False)
        return gone


def read_removal(folder: str) -> Removal:
    """What was asked for so far."""
    path = join(folder, "removed.json")
    try:
        value = read_json(path)
    except FileNotFoundError:
        return Removal()
    if not isinstance(value, dict) or not all(isinstance(value.get(key), list) for key in ("ids", "urls")):
        raise StorageError("this is no list of removed documents.", where=path,
                           hint="Put it back from a copy: without it, removed documents would return.")
    return Removal(tuple(value["ids"]), tuple(value["urls"]))


def read_names(path: str) -> list[str]:
    """One name a line; empty lines do not count. Raises RecipeError if there are none."""
    try:
        names = [line.strip() for line in Path(path).read_text("utf-8").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        hint = "Give a text file in UTF-8."
        raise RecipeError(f"the list cannot be read ({error}).", where=path, hint=hint) from error
    names = [name for name in names if name]
    if not names:
        raise RecipeError("the list is empty.", where=path, hint="Write one id or URL on each line.")
    return names


def blanked(batch: pa.RecordBatch, rows: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Rejected documents, these rows without anything of their content."""
    mask = pa.array(rows)
    new = [pc.if_else(mask, pa.scalar(None, field.type), column) if field.name in _CONTENT else column
           for field, column in zip(batch.schema, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(new, schema=batch.schema)


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal did: documents taken out, rejected ones blanked, and names that fit no document."""

    documents: int
    rejected: int
    unknown: tuple[str, ...]


def remove_documents(
    folder: str, *, ids: Sequence[str] = (), urls: Sequence[str] = (), dry_run: bool = False
) -> Removed:
    """Patch a finished corpus (`dry_run`: only count). Raises StaleDataError if it is not finished."""
    with lock_folder(folder):
        manifest = read_manifest(folder, made_by="python -m roots_pipeline run")
        check_files(folder, manifest)
        before, asked = read_removal(folder), Removal(tuple(ids), tuple(urls))
        patch = _Patch(asked)
        if dry_run:
            for part in ("documents", "rejected"):
                for path in list_files(join(folder, part), ".parquet"):
                    patch.count(path, part)
            return _done(patch, [*ids, *urls])
        # First of all: from here on a run leaves the documents out, whatever happens to the rest of this call.
        write_json(join(folder, "removed.json"), {
            "ids": sorted({*before.ids, *ids}), "urls": sorted({*before.urls, *urls})})
        files = dict(manifest.files)
        for part in ("documents", "rejected"):
            for path in list_files(join(folder, part), ".parquet"):
                name = path.rsplit("/", 1)[-1]
                if patch.file(path, part):
                    files[f"{part}/{name}"] = {"size": size_of(path), "xxh3": hash_file(path)}
                    _forget(folder, name)
        _write_manifest(folder, manifest, patch, files)
        return _done(patch, [*ids, *urls])


def _done(patch: _Patch, names: Sequence[str]) -> Removed:
    unknown = tuple(name for name in dict.fromkeys(names) if name not in patch.known)
    return Removed(patch.documents.total(), patch.rejected, unknown)


class _Patch:
    """Rewrites files without what was asked for, and counts it by source and language."""

    def __init__(self, asked: Removal) -> None:
        self.asked = asked
        self.known: set[str] = set()
        self.documents: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[tuple[str, str]] = Counter()
        self.rejected = 0

    def file(self, path: str, part: str) -> bool:
        """Whether the file held something that was asked for."""
        file = open_parquet(path)
        groups = range(file.num_row_groups)
        hits = [self.asked.rows_of(_group(file, number, ["id", "url"])).any() for number in groups]
        if not any(hits):
            return False
        with commit_file(path) as temporary, BatchWriter(temporary, file.schema_arrow, lasting=True) as out:
            for number, hit in zip(groups, hits, strict=True):
                batch = _group(file, number, file.schema_arrow.names)
                if hit:
                    batch = self._without(batch, part)
                if batch.num_rows:
                    out.write(batch)
        return True

    def count(self, path: str, part: str) -> None:
        """Count what the file holds of what was asked for, and leave it as it is."""
        file = open_parquet(path)
        for number in range(file.num_row_groups):
            if self.asked.rows_of(_group(file, number, ["id", "url"])).any():
                self._without(_group(file, number, file.schema_arrow.names), part)

    def _without(self, batch: pa.RecordBatch, part: str) -> pa.RecordBatch:
        gone = self.asked.rows_of(batch)
        taken = batch.filter(pa.array(gone))
        for name in ("id", "url"):
            self.known.update(value for value in taken.column(name).to_pylist() if value is not None)
        if part == "rejected":
            self.rejected += taken.num_rows
            return blanked(batch, gone)
        lengths = pc.binary_length(taken.column("text")).to_pylist()
        for source, language, length in zip(
            taken.column("source").to_pylist(), taken.column("language").to_pylist(), lengths, strict=True
        ):
            self.documents[source, language or ""] += 1
            self.bytes[source, language or ""] += length
        return batch.filter(pa.array(~gone))


def _group(file: Any, number: int, names: Iterable[str]) -> pa.RecordBatch:
    table = file.read_row_group(number, columns=list(names), use_threads=False).combine_chunks()
    return table.to_batches()[0]


def _forget(folder: str, name: str) -> None:
    """Delete intermediate files of a shard that hold texts; a later run makes them again from the source."""
    if is_remote(folder):
        return
    for path in Path(folder, ".work").glob(f"*/{name}"):
        if "text" in open_parquet(str(path)).schema_arrow.names:
            path.unlink()


def _write_manifest(folder: str, manifest: Manifest, patch: _Patch, files: dict[str, dict[str, Any]]) -> None:
    """The manifest with what was taken out counted as removed."""
    documents: Counter[tuple[str, str, str]] = Counter()
    sizes: Counter[tuple[str, str, str]] = Counter()
    for source, language, verdict, number, size in manifest.counts["by_source_language_verdict"]:
        documents[source, language, verdict] += number
        sizes[source, language, verdict] += size
    for (source, language), number in patch.documents.items():
        for counter, amount in ((documents, number), (sizes, patch.bytes[source, language])):
            counter[source, language, ""] -= amount
            counter[source, language, VERDICT] += amount
    write_manifest(
        folder, manifest.step, config=manifest.config, inputs=manifest.inputs, files=files,
        counts={**manifest.counts, **count_table(documents, sizes)},
        fingerprint=content_fingerprint(files), seeds=manifest.seeds,
    )


def count_table(documents: Counter[tuple[str, str, str]], sizes: Counter[tuple[str, str, str]]) -> dict[str, Any]:
    """Counts of a manifest from documents and bytes by source, language and verdict ('' = kept)."""
    kept = sum(number for (_, _, verdict), number in documents.items() if not verdict)
    removed = sum(number for (_, _, verdict), number in documents.items() if verdict == VERDICT)
    return {
        "kept": kept, "rejected": documents.total() - kept - removed, "removed": removed,
        "kept_bytes": sum(size for (_, _, verdict), size in sizes.items() if not verdict),
        "by_source_language_verdict": [[*key, documents[key], sizes[key]] for key in sorted(+documents)],
    }
