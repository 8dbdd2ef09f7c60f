"""Check a finished corpus: nothing vanished, nothing was damaged, and what was dropped as a duplicate has its twin.

    python -m roots_pipeline verify --run RUN

1. Every file that the manifest lists has its size and (with `hashes`) its content.
2. The rows of `documents/` and `rejected/` add up to what was read, and have the verdicts that the manifest counts.
3. Every document that a deduplicating stage dropped names one that stayed at that stage. A later stage may have dropped
   that one for a reason of its own, which is counted, not a fault.

Memory: 16 bytes for each document that is a cause, and one row group of ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.columns import open_parquet
from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.stages import Exchange
from roots_pipeline.core.storage import hash_file, join, list_files
from roots_pipeline.removal import VERDICT as REMOVED
from roots_pipeline.stage_table import STAGES
from roots_pipeline.text.hashes import hash_texts

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found; `twins` counts, for each verdict of a deduplicating stage, what became of causes ('' = kept)."""

    read: int
    kept: int
    rejected: int
    twins: dict[tuple[str, str], int]
    problems: list[str]


def verify_corpus(folder: str, *, hashes: bool = True) -> Verification:
    """Check a corpus folder. Raises StaleDataError if it is not finished or lacks a file; all else is in `problems`."""
    manifest = read_manifest(folder, made_by="python -m roots_pipeline run")
    check_files(folder, manifest)
    problems = _damaged(folder, manifest) if hashes else []
    if problems:  # what cannot be read cannot be counted
        return Verification(manifest.counts["read"], 0, 0, {}, problems)
    causes, dropped = _dropped(folder, manifest)
    fates, kept, verdicts = _fates(folder, np.unique(causes))
    problems += _sums(manifest, kept, verdicts)
    twins, without = _judge(manifest, causes, dropped, fates)
    return Verification(manifest.counts["read"], kept, sum(verdicts.values()), twins, [*problems, *without])


def _damaged(folder: str, manifest: Manifest) -> list[str]:
    return [f"{name} is not what was written (another hash)." for name, entry in manifest.files.items()
            if hash_file(join(folder, name)) != entry["xxh3"]]


def _sums(manifest: Manifest, kept: int, verdicts: Counter[str]) -> list[str]:
    expected: Counter[str] = Counter()
    for _, _, verdict, documents, _ in manifest.counts["by_source_language_verdict"]:
        expected[verdict] += documents
    found = verdicts + Counter({"": kept, REMOVED: expected[REMOVED]})  # removed ones are nowhere but in the counts
    problems = [f"{found[name]} documents have the verdict '{name}', the manifest counts {expected[name]}."
                for name in sorted(found.keys() | expected.keys()) if found[name] != expected[name]]
    if found.total() != manifest.counts["read"]:
        problems.append(f"{found.total()} documents were kept, rejected or removed, "
                        f"{manifest.counts['read']} were read.")
    return problems


def causes_of(manifest: Manifest) -> dict[str, str]:
    """For each verdict of a deduplicating stage, what its cause is (see `Exchange.cause_is`)."""
    stages = [STAGES.get(entry["stage"]) for entry in manifest.config["stages"]]
    return {stage.name: stage.cause_is for stage in stages
            if stage is not None and issubclass(stage, Exchange) and stage.cause_is != "other"}


def _dropped(folder: str, manifest: Manifest) -> tuple[npt.NDArray[np.uint64], list[tuple[str, str, str]]]:
    """Hashes of the causes of dropped duplicates, and their (id, verdict, cause)."""
    wanted = causes_of(manifest)
    rows = [(own, verdict, cause) for batch in _batches(folder, "rejected", ["id", "verdict", "cause"])
            for own, verdict, cause in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            if verdict in wanted]
    return _hash([cause or "" for _, _, cause in rows]), rows


def _fates(
    folder: str, wanted: npt.NDArray[np.uint64]
) -> tuple[dict[int, set[str]], int, Counter[str]]:
    """What became of the documents whose hashed ids are `wanted` ('' = kept); all kept; all verdicts."""
    fates: dict[int, set[str]] = {}
    verdicts: Counter[str] = Counter()
    kept = 0
    for part in ("documents", "rejected"):
        for batch in _batches(folder, part, ["id"] if part == "documents" else ["id", "verdict"]):
            names = batch.column("verdict").to_pylist() if part == "rejected" else [""] * batch.num_rows
            hashed = _hash(batch.column("id"))
            for row in np.flatnonzero(np.isin(hashed, wanted)).tolist():
                fates.setdefault(int(hashed[row]), set()).add(names[row])
            if part == "documents":
                kept += batch.num_rows
            else:
                verdicts.update(names)
    return fates, kept, verdicts


def _judge(
    manifest: Manifest, causes: npt.NDArray[np.uint64], dropped: Sequence[tuple[str, str, str]],
    fates: dict[int, set[str]],
) -> tuple[dict[tuple[str, str], int], list[str]]:
    kinds = causes_of(manifest)
    order = [entry["stage"] for entry in manifest.config["stages"]]
    missing = {key for key in causes.tolist() if key not in fates}
    removed = 0 < len(missing) <= manifest.counts.get("removed", 0)  # their ids are not kept, so numbers must do
    twins: Counter[tuple[str, str]] = Counter()
    problems: list[str] = []
    for key, (own, verdict, cause) in zip(causes.tolist(), dropped, strict=True):
        found = fates.get(key)
        if found is None and cause and removed:
            twins[verdict, REMOVED] += 1
            continue
        if found is None:
            problems.append(f"{own} was dropped ({verdict}) for {cause or 'no document'}, which is not in the corpus.")
            continue
        fate = min(found)  # ids should be unique; if not, one of that id that is kept will do
        twins[verdict, fate] += 1
        if kinds[verdict] == "twin" and not _may_follow(order, verdict, fate):
            problems.append(f"{own} was dropped ({verdict}) for {cause}, which had been dropped itself ({fate}).")
    more = len(problems) - _SHOWN
    return dict(twins), [*problems[:_SHOWN], *([f"… and {more} more like these."] if more > 0 else [])]


def _may_follow(order: Sequence[str], verdict: str, fate: str) -> bool:
    """Whether a document that stayed at stage `verdict` may have been dropped with `fate` afterwards."""
    if not fate:
        return True
    first = order.index(verdict)
    fate = fate.removeprefix("known_")  # the first rounds of a stage that knows an old corpus
    if fate in order:  # the verdict of an exchange: its last place counts
        return len(order) - 1 - order[::-1].index(fate) > first
    return any(not issubclass(stage, Exchange) or stage.cause_is == "other"
               for stage in map(STAGES.__getitem__, order[first + 1 :]))


def _hash(ids: pa.Array | Sequence[str]) -> npt.NDArray[np.uint64]:
    column = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.large_string())
    hashed: npt.NDArray[np.uint64] = hash_texts(*text_buffers(column))[:, 0]
    return hashed


def _batches(folder: str, part: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in list_files(join(folder, part), ".parquet"):
        file: pq.ParquetFile = open_parquet(path)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=list(columns), use_threads=False).combine_chunks()
            yield from table.select(list(columns)).to_batches()
