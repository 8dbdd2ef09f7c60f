"""Datasets of the Hugging Face Hub, and local folders in its layouts, through the library `datasets`.

In: `hf://user/name`, or a folder (data files with or without a README that names configurations, or what
`save_to_disk` wrote). The library says which files a split consists of; each is then one file of the source and is
streamed, so nothing is downloaded as a whole and shards work as for any other source. Files of the Hub carry the
commit they were found at. Out: as of Parquet. No code of a dataset is ever run.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.sources.arrow_records import documents, problem_of, wanted_columns
from roots_pipeline.sources.base import BATCH_BYTES, FileSlice, Quarantined, excerpt
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import locate

_ROWS = 200
_HUB = "hf://"


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFace(Fields):
    """Reader of a split of a dataset. `config` names one of its configurations, `revision` a commit, tag or branch."""

    name: ClassVar[str] = "hf"
    version: ClassVar[int] = 1

    split: str = "train"
    config: str | None = None
    revision: str | None = None

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".parquet", ".arrow", ".jsonl", ".json", ".jsonl.gz", ".json.gz", ".jsonl.zst", ".json.zst", ".csv",
                ".csv.gz", ".tsv", ".txt", ".txt.gz")

    def files(self, path: str) -> list[FileSlice]:
        """The files of the split. Raises SourceError if the dataset cannot be reached, RecipeError if it lacks it."""
        _, found = self._resolved(path)
        if self.split not in found:
            raise RecipeError(f"the dataset has no split '{self.split}'.", where=path,
                              hint=f"It has {', '.join(map(str, found)) or 'none'}.")
        return [FileSlice(name, _size(name)) for name in found[self.split]]

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`. A file of another split gives nothing."""
        format_name, found = self._resolved(self.root or path)
        if path not in found.get(self.split, ()):
            return
        done = 0
        problem: str | None = None
        try:
            for rows in _streamed(format_name, path):
                problem = problem_of(self, rows.schema) if not done else None
                if problem:
                    break
                used = [name for name in rows.schema.names if name in wanted_columns(self)]
                for batch in rows.select(used).combine_chunks().to_batches():
                    yield from documents(self, path, done, batch, batch_bytes, _name_below(path, self.root))
                    done += batch.num_rows
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise SourceError(f"cannot read this file: {error.strerror or error}.", where=path) from error
            problem = f"rows from {done + 1:,} on cannot be read: {type(error).__name__}: {error}"[:300]
        if problem:
            yield Quarantined(path, done + 1 if done else None, excerpt(problem) if done else problem, "")

    def _resolved(self, path: str) -> tuple[str, dict[str, list[str]]]:
        """The library's name for the file format, and the files of each split."""
        return _resolve(path, self.config, self.revision)


@functools.lru_cache(maxsize=32)
def _resolve(path: str, config: str | None, revision: str | None) -> tuple[str, dict[str, list[str]]]:
    import datasets  # takes a second to import

    name = path.removeprefix(_HUB).removeprefix("datasets/") if path.startswith(_HUB) else os.path.abspath(path)
    try:
        builder = datasets.load_dataset_builder(name, name=config, revision=revision)
    except ValueError as error:
        raise RecipeError(f"{' '.join(str(error).split())[:300]}", where=path, hint="Set `config`.") from error
    except (OSError, datasets.exceptions.DatasetsError) as error:
        hint = "Is the name right, and the Hub reachable (HF_HUB_OFFLINE not set)? Local folders need no network."
        raise SourceError(f"cannot open this dataset: {' '.join(str(error).split())[:300]}.", where=path,
                          hint=hint) from error
    files = {str(split): [str(file) for file in found] for split, found in (builder.config.data_files or {}).items()}
    return type(builder).__module__.rsplit(".", 1)[-1], files


def _streamed(format_name: str, path: str) -> Iterator[Any]:
    """The rows of one file as Arrow tables."""
    import datasets

    stream = datasets.load_dataset(format_name, data_files={"train": [path]}, split="train", streaming=True)
    yield from stream.with_format("arrow").iter(batch_size=_ROWS)


def _size(path: str) -> int:
    filesystem, inside = locate(path)
    return int(filesystem.info(inside).get("size") or 0)


def _name_below(path: str, root: str) -> str:
    """The file's name inside the dataset: below a local folder, or after the commit of a file of the Hub."""
    if path.startswith(_HUB):
        return path.partition("@")[2].partition("/")[2] or path.rsplit("/", 1)[-1]
    return os.path.relpath(path, os.path.abspath(root)).replace(os.sep, "/") if root else os.path.basename(path)
