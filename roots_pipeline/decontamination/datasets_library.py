"""Evaluation sets that the library `datasets` finds: of the Hugging Face Hub, or a folder in one of its layouts.

In: `hf://user/name`, or a folder of data files (with or without a README that names configurations). Out: the files of
each split, and their rows. No code of a dataset is ever run, and nothing is stored: rows are streamed from the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from roots_pipeline.core.errors import SourceError

HUB = "hf://"


class Layout(NamedTuple):
    """The library's name for the format of the files, and the files of each split."""

    format: str
    splits: dict[str, tuple[str, ...]]


@lru_cache(maxsize=64)
def find_layout(path: str, config: str | None, revision: str | None) -> Layout:
    """The files of a dataset; those of the Hub carry the commit they were found at. Raises SourceError."""
    import datasets  # takes seconds, and only this kind of path needs it

    name = path.removeprefix(HUB).removeprefix("datasets/") if path.startswith(HUB) else os.path.abspath(path)
    try:
        builder = datasets.load_dataset_builder(name, name=config, revision=revision)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise SourceError(f"the evaluation set cannot be opened: {reason}.", where=path,
                          hint="Check `path` and `config`, and whether the Hub can be reached; or save the set to disk."
                          ) from error
    found = {str(split): tuple(map(str, files)) for split, files in (builder.config.data_files or {}).items()}
    return Layout(type(builder).__module__.rsplit(".", 1)[-1], found)


def rows_of(layout: Layout, file: str) -> Iterator[dict[str, Any]]:
    """The rows of one file, in order. Raises what the library raises."""
    import datasets

    yield from datasets.load_dataset(layout.format, data_files={"train": [file]}, split="train", streaming=True)
