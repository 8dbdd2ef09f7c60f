"""An evaluation set as a recipe names it, and a fingerprint of what its files hold.

    evaluations:
      - {name: gsm8k, path: "evaluations/gsm8k/*.jsonl.zst", fields: [question, answer]}
      - {name: squad, path: "evaluations/squad", fields: [context, question], splits: [validation]}
      - {name: boolq, path: "hf://aps/super_glue", config: boolq, fields: [passage, question], splits: [validation]}
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from roots_pipeline.core.storage import fingerprint, hash_file
from roots_pipeline.decontamination.datasets_library import HUB, find_layout
from roots_pipeline.sources.base import FileSlice
from roots_pipeline.sources.discover import discover
from roots_pipeline.sources.files import locate, relative_name

SUFFIXES = (*(kind + packing for kind in (".jsonl", ".ndjson", ".json") for packing in ("", ".gz", ".zst")), ".parquet",
            ".pq")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# What `save_to_disk` of the library `datasets` leaves in a folder, for one split and for several.
_DATASET_MARKS = ("state.json", "dataset_dict.json")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation set.

    `path`      a file, folder or pattern of JSON lines (plain, gzip, zstd) or Parquet files, or the folder of a Hugging
                Face dataset saved on disk; local, an fsspec URL, or `package://...`. `hf://user/name`, and a folder for
                which `splits` or `config` is given, is opened by the library `datasets`
    `fields`    names of the fields that hold an item's text, in order; `answers.text` is a field inside a field. A list
                of strings counts as its strings, one after the other
    `id_field`  the field that names an item; without it, and if an earlier record has the same id, an item is called
                `<file>:<record>`
    `splits`    of a Hugging Face dataset with several: the ones to read (default all)
    `config`    of a Hugging Face dataset with several configurations: the one to read
    `revision`  of a dataset of the Hub: a commit, tag or branch
    """

    # A slip in a key is an error.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    path: str
    fields: tuple[str, ...] = ("text",)
    id_field: str = "id"
    splits: tuple[str, ...] = ()
    config: str | None = None
    revision: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"'{self.name}' cannot name an evaluation set; use letters, digits, '.', '_' and '-'.")
        if not self.fields or not all(self.fields):
            raise ValueError(f"evaluation set '{self.name}' names no field that holds text; list one in `fields`.")

    @property
    def is_of_the_library(self) -> bool:
        """Whether the library `datasets` has to find the files."""
        if self.path.startswith(HUB):
            return not self.path.endswith(SUFFIXES)
        return bool(self.config or self.splits) and os.path.isdir(self.path) and not self.is_saved

    @property
    def is_saved(self) -> bool:
        """Whether the path is a Hugging Face dataset saved on disk."""
        filesystem, inside = locate(self.path)
        return any(filesystem.exists(f"{inside.rstrip('/')}/{mark}") for mark in _DATASET_MARKS)

    def files(self) -> list[FileSlice]:
        """Its files, sorted. Raises SourceError if the path leads nowhere."""
        if self.is_of_the_library:
            splits = find_layout(self.path, self.config, self.revision).splits
            return [FileSlice(file, 0) for split in sorted(splits) for file in splits[split]]
        return discover(self.path, () if self.is_saved else SUFFIXES)


def content_of(evaluations: Sequence[Evaluation]) -> str:
    """A fingerprint of what the files of these sets hold; it changes with any byte of any file.

    Contents are hashed once as long as size and times (or whatever else the store tells) stay the same.
    """
    return fingerprint([
        [evaluation.name,
         [[relative_name(file.path, evaluation.path), _hash_of(file.path, _stamp(file.path))]
          for file in evaluation.files()]]
        for evaluation in evaluations
    ])


def _stamp(path: str) -> str:
    filesystem, inside = locate(path)
    return str(filesystem.ukey(inside))


@lru_cache(maxsize=4096)
def _hash_of(path: str, stamp: str) -> str:
    return hash_file(path)
