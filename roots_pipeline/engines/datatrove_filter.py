"""Our rules one by one in a pipeline of datatrove: documents in, kept documents out.

    from roots_pipeline.stage_table import make_stage
    filter = RootbloomFilter(make_stage("massivetext", {}), make_stage("thresholds", {}))

Any stages that look at one document at a time (`Map`) fit; they see batches of `batch_size` documents. Texts that a
stage edits are edited, and with `measures=True` what it measured goes to the metadata. The statistics count the dropped
documents by verdict. `exclusion_writer` gets them with the verdict in `filter_reason`.
"""

from __future__ import annotations

import re
from typing import Any

import orjson
import pyarrow as pa
from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.writers.disk_base import DiskWriter

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map, Stage

_SURROGATES = re.compile("[\ud800-\udfff]")
_FROM_METADATA = ("source", "language", "url", "license")


class RootbloomFilter(BaseFilter):  # type: ignore[misc]  # datatrove ships no types
    """Stages as a filter. `source`, `language`, `url`, `license` are taken from the metadata of the documents.

    Raises RecipeError for a stage for which documents must meet, such as deduplication: only a whole run can do that.
    """

    name = "Rootbloom"

    def __init__(self, *stages: Stage, measures: bool = False, batch_size: int = 256,
                 exclusion_writer: DiskWriter | None = None) -> None:
        super().__init__(exclusion_writer, max(2, batch_size))
        for stage in stages:
            if not isinstance(stage, Map):
                raise RecipeError(f"stage '{stage.name}' compares documents with each other; a filter sees one.",
                                  hint="Use it in a recipe: python -m roots_pipeline run --engine datatrove.")
        self.stages = [stage for stage in stages if isinstance(stage, Map)]
        self.measures = measures
        self.name = f"Rootbloom {', '.join(stage.name for stage in stages)}"

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """The verdict on one document."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """True for a kept document, else False and the verdict."""
        rows = to_batch(batch)
        before = set(rows.schema.names)
        for stage in self.stages:
            rows = stage(rows)
        if any("text" in stage.gives for stage in self.stages):
            for document, text in zip(batch, rows.column("text").to_pylist(), strict=True):
                document.text = text
        if self.measures:
            for name in rows.schema.names:
                if name not in before and not name.startswith("_"):
                    for document, value in zip(batch, rows.column(name).to_pylist(), strict=True):
                        document.metadata[name] = value
        return [True if verdict is None else (False, verdict) for verdict in rows.column("verdict").to_pylist()]


def to_batch(documents: list[Document]) -> pa.RecordBatch:
    """Documents of datatrove as a batch of ours. Half a character (a lone surrogate) becomes U+FFFD."""
    rows = [_row(document) for document in documents]
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in DOCUMENT_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_SCHEMA)


def _row(document: Document) -> dict[str, Any]:
    metadata = document.metadata or {}
    known = {name: _clean(str(metadata[name])) for name in _FROM_METADATA if metadata.get(name) is not None}
    return {
        "source": "datatrove", **known, "id": _clean(str(document.id)), "text": _clean(document.text),
        "metadata": orjson.dumps(_plain(metadata), default=str, option=orjson.OPT_NON_STR_KEYS).decode(),
    }


def _clean(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value
