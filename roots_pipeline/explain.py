"""What became of a document: where it is, every measure with its limits, its verdict, and what caused it.

    python -m roots_pipeline explain ID --run RUN [--json]

Reads the finished corpus only: `documents/`, `rejected/`, `pairs/`, and the recipe in the manifest. Ids should be
unique; if several documents have this one, all are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.columns import open_parquet
from roots_pipeline.core.documents import DOCUMENT_SCHEMA, IDENTITY
from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import join, list_files
from roots_pipeline.rules.columns import language_code
from roots_pipeline.verify import causes_of

_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure and the limits that held for the document's language (null: none)."""

    name: str
    value: Any
    minimum: float | None
    maximum: float | None

    @property
    def outside(self) -> bool:
        low, high = self.minimum, self.maximum
        return self.value is not None and ((low is not None and self.value < low)
                                           or (high is not None and self.value > high))


@dataclass(frozen=True, slots=True)
class Explanation:
    """One document. `verdict` is null if it was kept; `row` counts within `file`."""

    identity: dict[str, Any]
    file: str
    row: int
    verdict: str | None
    cause: str | None
    inputs: list[str]
    measures: list[Measure]
    text: str | None
    other: dict[str, Any] | None  # the document of this corpus that is the cause: file, row, verdict, text
    pairs: list[dict[str, Any]]  # verified pairs of near duplicates that it is in


def explain_document(folder: str, id: str) -> list[Explanation]:
    """All documents with an id. Raises StaleDataError (no finished corpus) or SourceError (no such document)."""
    manifest = read_manifest(folder, made_by="python -m roots_pipeline run")
    found = list(_find(folder, id))
    if not found:
        raise SourceError(f"no document has the id '{id[:200]}'.", where=folder,
                          hint="It may have been unreadable (see quarantine/), removed, or never read.")
    kinds = causes_of(manifest)
    pairs = _pairs_of(folder, id)
    groups = {source["name"]: source["group"] for source in manifest.config["sources"]}
    told = []
    for name, row, values in found:
        verdict, cause = values.get("verdict"), values.get("cause")
        other = next(_find(folder, cause), None) if cause is not None and verdict in kinds else None
        shard = name.rpartition("/")[2].removesuffix(".parquet")
        told.append(Explanation(
            {key: values[key] for key in IDENTITY}, name, row, verdict, cause,
            [path for path, _ in manifest.inputs.get(shard, [])],
            measures_of(manifest.config["stages"], groups.get(values["source"]), values),
            _excerpt(values["text"]), _other(other) if other else None, pairs,
        ))
    return told


def _find(folder: str, id: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """File, row and columns of the documents with an id."""
    for part in ("documents", "rejected"):
        for path in list_files(join(folder, part), ".parquet"):
            file, first = open_parquet(path), 0
            for group in range(file.num_row_groups):
                ids = file.read_row_group(group, columns=["id"], use_threads=False).column("id")
                # pc.indices_nonzero of an empty column ends the process (pyarrow 25)
                for row in np.flatnonzero(pc.fill_null(pc.equal(ids, id), False).to_numpy()).tolist():
                    values = file.read_row_group(group, use_threads=False).slice(row, 1).to_pylist()[0]
                    yield f"{part}/{path.rsplit('/', 1)[-1]}", first + row, values
                first += len(ids)


def _pairs_of(folder: str, id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in list_files(join(folder, "pairs"), ".parquet"):
        table: pa.Table = open_parquet(path).read(use_threads=False)
        mask = pc.or_(pc.equal(table.column("id"), id), pc.equal(table.column("other"), id))
        found += table.filter(mask).to_pylist()
    return found


def measures_of(
    stages: Sequence[Mapping[str, Any]], group: str | None, values: Mapping[str, Any]
) -> list[Measure]:
    """The measures among a document's columns, with the limits that these stages set for its group and language."""
    mine = [stage for stage in stages if stage["groups"] is None or group in stage["groups"]]
    limits = _limits(mine, language_code(values.get("language") or ""))
    return [Measure(name, value, *(limits.get(name) or (None, None)))
            for name, value in values.items() if name not in DOCUMENT_SCHEMA.names]


def _limits(stages: Sequence[Mapping[str, Any]], language: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for stage in stages:
        if stage["stage"] == "thresholds":
            by_language = stage["limits"]
            found |= {**by_language.get("default", {}), **by_language.get(language, {})}
    return found


def _excerpt(text: str | None) -> str | None:
    return text if text is None or len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"


def _other(found: tuple[str, int, dict[str, Any]]) -> dict[str, Any]:
    name, row, values = found
    return {"id": values["id"], "file": name, "row": row, "verdict": values.get("verdict"),
            "text": _excerpt(values["text"])}


def as_text(told: Explanation) -> str:
    """The explanation in sentences, control characters of foreign text made visible."""
    fate = "kept" if told.verdict is None else f"dropped: {told.verdict}"
    of = " of another corpus" if (told.verdict or "").startswith("known_") else ""
    lines = [f"{told.identity['id']}: {fate}" + (f", because of {told.cause}{of}" if told.cause else "")]
    lines += [f"  {name}: {_plain(value)}" for name, value in told.identity.items() if value and name != "id"]
    lines.append(f"  at: {told.file}, row {told.row}; read from {', '.join(told.inputs) or 'an unknown file'}")
    for measure in told.measures:
        if measure.value is not None:
            mark = "!" if measure.outside else " "
            lines.append(f"  {mark} {measure.name} = {_number(measure.value)}{_bounds(measure)}")
    for pair in told.pairs:
        near = pair.get("jaccard")
        similar = f"Jaccard {near:.3f}" if near is not None else f"{pair['distance']} bits apart"
        lines.append(f"  pair: {pair['id']} ~ {pair['other']} ({similar}), cluster of {pair['cluster']}")
    lines.append(f"  text: {_plain(told.text)}")
    if told.other is not None:
        state = f"dropped later: {told.other['verdict']}" if told.other["verdict"] else "kept"
        lines.append(f"  cause: {told.other['id']} ({state}), {told.other['file']}, row {told.other['row']}")
        lines.append(f"  its text: {_plain(told.other['text'])}")
    return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _plain(str(value))


def _bounds(measure: Measure) -> str:
    low, high = measure.minimum, measure.maximum
    if low is None and high is None:
        return ""
    return f"  (limits {'-' if low is None else f'{low:g}'} to {'-' if high is None else f'{high:g}'})"


def _plain(text: Any) -> str:
    return "(not stored)" if text is None else "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in str(text))
