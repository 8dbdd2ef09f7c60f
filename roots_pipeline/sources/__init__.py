"""Sources: one reader a file format, from a path in a recipe to batches of documents.

`discover` finds the files, `SOURCES` names the readers, `read_files` runs one of them over several files.
What a file holds that cannot become a document comes out as `Quarantined`.
"""

from __future__ import annotations

from roots_pipeline.sources.base import FileSlice, Quarantined, Reader
from roots_pipeline.sources.code import Code
from roots_pipeline.sources.datatrove_readers import Datatrove
from roots_pipeline.sources.delimited import Csv, Tsv
from roots_pipeline.sources.discover import discover, files_of
from roots_pipeline.sources.gather import read_files
from roots_pipeline.sources.html import Html
from roots_pipeline.sources.hugging_face import HuggingFace
from roots_pipeline.sources.jsonl import Jsonl
from roots_pipeline.sources.parquet import Parquet
from roots_pipeline.sources.plain_text import Text
from roots_pipeline.sources.warc import Warc, Wet

SOURCES: dict[str, type[Reader]] = {
    "jsonl": Jsonl,
    "parquet": Parquet,
    "csv": Csv,
    "tsv": Tsv,
    "text": Text,
    "html": Html,
    "warc": Warc,
    "wet": Wet,
    "code": Code,
    "hf": HuggingFace,
    "datatrove": Datatrove,
}

__all__ = [
    "SOURCES", "Code", "Csv", "Datatrove", "FileSlice", "Html", "HuggingFace", "Jsonl", "Parquet", "Quarantined",
    "Reader", "Text", "Tsv", "Warc", "Wet", "discover", "files_of", "read_files",
]
