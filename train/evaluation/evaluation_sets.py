"""The evaluation sets that a corpus was compared with, read again: which item is which record.

The stage `decontaminate` noted in the corpus' manifest what it read, with a fingerprint of the files, and beside each
document the items that it holds, as `<set>/<item>`. An item is called by its id, or `<file>:<record>`.
"""

from __future__ import annotations

import glob
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import zstandard

import roots_pipeline
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.storage import fingerprint, hash_file

_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_ENDINGS = (*(kind + packing for kind in _JSON for packing in ("", ".gz", ".zst")), *_PARQUET)
_SAVED = ("state.json", "dataset_dict.json")  # a data set that the library `datasets` has saved
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """One set of a stage `decontaminate`, as the manifest has it."""

    name: str
    path: str
    id_field: str
    action: str  # what became of documents that hold an item: drop, cut, report
    by_the_library: bool  # read by the library `datasets`, which is not asked here


@dataclass(frozen=True, slots=True)
class Stage:
    """The sets of one stage and the fingerprint of their files."""

    sets: tuple[EvaluationSet, ...]
    content: str


def stages_of(config: dict[str, Any]) -> list[Stage]:
    """The stages `decontaminate` of a corpus' settings."""
    found = []
    for entry in config.get("stages", []):
        if entry.get("stage") == "decontaminate":
            sets = tuple(
                EvaluationSet(
                    one["name"], one["path"], one["id_field"], entry["action"],
                    bool(one.get("splits") or one.get("config")),
                )
                for one in entry["evaluations"]
            )  # fmt: skip
            found.append(Stage(sets, entry.get("content", "")))
    return found


def records_of(stage: Stage, wanted: EvaluationSet) -> dict[bytes, set[str]]:
    """Item ids of a set by record (see `as_key`).

    Raises StaleDataError if it cannot be shown that the files of the stage are those that the corpus was compared with.
    """
    content: list[list[Any]] = []
    own: list[tuple[str, Path]] = []
    for one in stage.sets:
        files = files_of(one)
        content.append([one.name, [[name, hash_file(str(path))] for name, path in files]])
        own = files if one is wanted else own
    if fingerprint(content) != stage.content:
        raise StaleDataError("the evaluation sets have changed since the corpus was compared with them.")
    found: dict[bytes, set[str]] = {}
    for name, path in own:
        for number, record in _records(path):
            given = record.get(wanted.id_field)
            usable = isinstance(given, str | int) and not isinstance(given, bool) and given != ""
            found.setdefault(as_key(record), set()).add(str(given) if usable else f"{name}:{number}")
    return found


def as_key(record: dict[str, Any]) -> bytes:
    """A record as JSON, fields in order: what two records that say the same have in common."""
    return orjson.dumps(record, option=orjson.OPT_SORT_KEYS, default=str)


def files_of(one: EvaluationSet) -> list[tuple[str, Path]]:
    """(name below the path, file) of a set, sorted. Raises StaleDataError if they are not files of this machine."""
    inside = one.path.removeprefix("package://")
    root = Path(inside) if inside == one.path else Path(roots_pipeline.__file__).parent / inside.strip("/")
    found: list[Path] = []
    if root.is_file():
        found, base = [root], root.parent
    elif root.is_dir() and not any((root / name).exists() for name in _SAVED) and not one.by_the_library:
        base = root
        found = [
            path
            for path in root.rglob("*")
            if path.is_file()
            and path.name.endswith(_ENDINGS)
            and not any(part.startswith(".") for part in path.relative_to(root).parts)
        ]
    elif any(character in inside for character in "*?["):
        plain = [part for part in root.parts if not any(character in part for character in "*?[")]
        base = Path(*root.parts[: next(n for n, part in enumerate(root.parts) if part not in plain)])
        matched = (Path(path) for path in glob.glob(str(root), recursive=True, include_hidden=True))
        found = [path for path in matched if path.is_file() and (inside[-1] != "*" or path.name.endswith(_ENDINGS))]
    if not found:
        raise StaleDataError(f"the evaluation set {one.name} ({one.path}) is not in files that can be read here.")
    ordered = sorted(found, key=lambda path: str(path.absolute()).encode())
    return [(path.relative_to(base).as_posix(), path) for path in ordered]


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records of a file with their numbers, counted from 1 as the corpus step counts them."""
    if path.name.endswith(_PARQUET):
        yield from enumerate((row for batch in pq.ParquetFile(path).iter_batches() for row in batch.to_pylist()), 1)
        return
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            text = line.removeprefix(_BOM)
            if text.strip():
                yield number, orjson.loads(text)


def _opened(path: Path) -> io.BufferedIOBase:
    """A file of lines, unpacked."""
    if path.suffix == ".zst":
        unpacked = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True, closefd=True)
        return io.BufferedReader(unpacked)
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
