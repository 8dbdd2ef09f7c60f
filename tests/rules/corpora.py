"""Documents for the tests of rules: the labelled sample corpus, and real text where it is at hand."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard

from roots_pipeline.core.documents import make_batch


def sample_documents(sample: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All web documents of the sample corpus, and what is planted in which (by id)."""
    documents: list[dict[str, Any]] = []
    plants: dict[str, str] = {}
    for path in sorted((sample / "web").glob("*.jsonl")):
        if path.stem != "leaks":
            documents += [{**row, "source": "web", "language": path.stem} for row in rows_of(path)]
            plants |= {row["id"]: row["plant"] for row in rows_of(sample / "labels" / path.name)}
    return documents, plants


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text("utf-8").split("\n") if line)


def real_documents(shared: Path, language: str, count: int) -> list[dict[str, Any]]:
    """About `count` documents of the folder of real text, spread over its sources."""
    with open(shared / "data" / "corpus" / f"{language}.jsonl.zst", "rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8", newline="\n")
        rows = [json.loads(line) for line in lines]
    rows = rows[:: max(1, len(rows) // count)]
    return [{"id": row["id"], "text": row["text"], "source": "real", "language": language} for row in rows]


def batch_of(*texts: str, language: str | None = "en") -> pa.RecordBatch:
    """A batch of these texts, all in one language."""
    return make_batch(
        [{"id": str(k), "text": text, "source": "test", "language": language} for k, text in enumerate(texts)]
    )
