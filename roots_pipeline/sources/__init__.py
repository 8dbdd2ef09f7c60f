"""Sources: one reader a file format, from a path in a recipe to batches of documents.

`discover` finds the files, `SOURCES` names the readers, `read_files` runs one of them over several files.
What a file holds that cannot become a document comes out as `Quarantined`.
"""

from __future__ import annotations

from roots_pipeline.sources.base import FileSlice, Quarantined, Reader
from roots_pipeline.sources.code import Code
from roots_pipeline.sources.discover import discover
from roots_pipeline.sources.gather import read_files
from roots_pipeline.sources.html import Html
from roots_pipeline.sources.jsonl import Jsonl
from roots_pipeline.sources.parquet import Parquet

SOURCES: dict[str, type[Reader]] = {
    "jsonl": Jsonl,
    "parquet": Parquet,
    "html": Html,
    "code": Code,
}

__all__ = [
    "SOURCES", "Code", "FileSlice", "Html", "Jsonl", "Parquet", "Quarantined", "Reader", "discover", "read_files",
]
