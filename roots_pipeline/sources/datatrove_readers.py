"""The readers of datatrove, for who has recipes or formats that rely on them.

In: a file, and the name of a reader class of `datatrove.pipeline.readers` with its arguments. Out: batches, and a
quarantined record for each record without text and for a file that the reader fails on. What such a reader leaves
out by itself (lines that are no JSON, for one) cannot be seen from here; our own readers say it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

import pyarrow as pa

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.core.recipe import nearest
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Quarantined, excerpt
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import relative_name
from roots_pipeline.sources.records import Record, documents

_PACKAGE = "datatrove.pipeline.readers"
# The classes that read files, and the endings of these.
_READERS = {
    "JsonlReader": (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".json.zst"),
    "ParquetReader": (".parquet",),
    "CSVReader": (".csv", ".csv.gz"),
    "IpcReader": (".arrow", ".feather", ".ipc"),
    "WarcReader": (".warc", ".warc.gz", ".wet", ".wet.gz"),
}
# Set here, or matters of finding and sharing files, which are this pipeline's own.
_NOT_FOR_RECIPES = frozenset((
    "self", "data_folder", "paths_file", "limit", "skip", "file_progress", "doc_progress", "adapter", "text_key",
    "id_key", "recursive", "glob_pattern", "shuffle_files", "add_file_path",
))


@dataclass(frozen=True, slots=True, kw_only=True)
class Datatrove(Fields):
    """Reader by the name of a datatrove class; `arguments` are that class's own. Fields may stand in the metadata."""

    name: ClassVar[str] = "datatrove"
    version: ClassVar[int] = 1

    reader: str = "JsonlReader"
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Fields.__post_init__(self)
        where = f"source '{self.source}'"
        known = [*_READERS, *(f"{_PACKAGE}.{name}" for name in _READERS)]
        if self.reader not in known:
            hint = "Use `kind: hf` for it." if "HuggingFace" in self.reader else nearest(self.reader, list(_READERS))
            raise RecipeError(f"`reader` is {self.reader!r}, which is no file reader of {_PACKAGE}.",
                              where=where, hint=hint)
        parameters = inspect.signature(self._class().__init__).parameters
        allowed = [name for name in parameters if name not in _NOT_FOR_RECIPES]
        for name in self.arguments:
            if name not in allowed:
                raise RecipeError(f"`{self.reader}` takes no argument '{name}' from a recipe.", where=where,
                                  hint=nearest(name, allowed))

    @property
    def suffixes(self) -> tuple[str, ...]:
        return _READERS[self.reader.rsplit(".", 1)[-1]]

    def _class(self) -> Any:
        try:
            return getattr(import_module(_PACKAGE), self.reader.rsplit(".", 1)[-1])
        except ImportError as error:
            raise RecipeError(f"datatrove cannot be used: {error}.", where=f"source '{self.source}'") from error

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        block: list[Record] = []
        size = 0
        for item in self._records(path):
            if isinstance(item, Quarantined):
                yield item
                continue
            block.append(item)
            size += len(item.fields[self.text_field])
            if size >= batch_bytes or len(block) == BATCH_ROWS:
                yield from documents(self, path, block)
                block, size = [], 0
        yield from documents(self, path, block)

    def _records(self, path: str) -> Iterator[Record | Quarantined]:
        file = relative_name(path, self.root)
        lost: list[tuple[int, str]] = []

        def adapt(reader: Any, data: dict[str, Any], source: str, place: Any) -> dict[str, Any]:
            names = ", ".join(map(excerpt, data))[:300]
            found: dict[str, Any] = reader._default_adapter(data, source, place)
            if not isinstance(found.get("text"), str) or not found["text"]:
                found["text"] = None
                lost.append((number + len(lost) + 1, f"no text in `{self.text_field}`; fields: {names}"))
            return found

        number = 0
        try:
            reader = self._class()(
                path.removesuffix(file) or ".", adapter=adapt, text_key=self.text_field, id_key=self.id_field,
                **self.arguments)
            for document in reader.read_file(file):
                yield from (Quarantined(path, place, reason, "") for place, reason in lost)
                number += 1 + len(lost)
                lost.clear()
                # What the class found counts, also where its metadata has a field of the same name.
                yield Record(number, {**document.metadata, self.text_field: document.text, self.id_field: document.id},
                             document.text[:400])
        except (ImportError, TypeError) as error:
            if number:
                raise
            message = f"{self.reader} cannot be used: {error}"[:300]
            raise RecipeError(message, where=f"source '{self.source}'") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise SourceError(f"cannot read this file: {error.strerror or error}.", where=path) from error
            problem = f"{self.reader} failed after {number:,} records: {type(error).__name__}: {error}"
            yield Quarantined(path, number + 1 if number else None, excerpt(problem), "")
        yield from (Quarantined(path, place, reason, "") for place, reason in lost)
