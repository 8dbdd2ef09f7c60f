"""datatrove's readers by name: the same documents, what they lose, what a recipe may not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.sources import Datatrove, Jsonl, discover
from tests.sources.helpers import run, texts

LINES = '{"text":"a","id":"1","url":"http://x","lang":"en"}\n{"foo":1}\nnot json\n{"text":"b"}\n{"text":""}\n'


def test_jsonl(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.jsonl").write_text(LINES)
    reader = Datatrove(
        source="s", root=str(tmp_path), language_field="lang", metadata_fields=("lang",), license="CC0-1.0")
    (file,) = discover(str(tmp_path), reader.suffixes)
    documents, bad = run(reader, file.path)
    assert [(d["id"], d["text"], d["url"], d["language"], d["license"], d["metadata"]) for d in documents] == [
        ("1", "a", "http://x", "en", "CC0-1.0", '{"lang":"en"}'), ("d/a.jsonl/3", "b", None, None, "CC0-1.0", None)]
    assert [(record.record, record.reason) for record in bad] == [
        (2, "no text in `text`; fields: foo"), (4, "no text in `text`; fields: text")]


@pytest.mark.parametrize("name", ["ParquetReader", "datatrove.pipeline.readers.CSVReader", "JsonlReader"])
def test_the_same_texts_as_our_own_readers(sample: Path, tmp_path: Path, name: str) -> None:
    ours, _ = run(Jsonl(source="s"), sample / "web" / "en.jsonl")
    path = sample / "web" / "en.jsonl"
    if name != "JsonlReader":
        table = pa.table({"id": [d["id"] for d in ours], "text": texts(ours)})
        path = tmp_path / "x"
        if name == "ParquetReader":
            pq.write_table(table, path)
        else:
            import csv

            with path.open("w", newline="") as handle:
                csv.writer(handle).writerows([("id", "text"), *zip(*table.to_pydict().values(), strict=True)])
    theirs, bad = run(Datatrove(source="s", reader=name), path)
    assert [(d["id"], d["text"]) for d in theirs] == [(d["id"], d["text"]) for d in ours] and not bad


def test_arguments_and_files_it_fails_on(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing")
    reader = Datatrove(source="s", reader="ParquetReader", arguments={"batch_size": 5})
    documents, bad = run(reader, tmp_path / "x.parquet")
    assert not documents and "ParquetReader failed after 0 records" in bad[0].reason
    with pytest.raises(SourceError):
        run(Datatrove(source="s"), tmp_path / "missing.jsonl")


@pytest.mark.parametrize(("settings", "message"), [
    ({"reader": "os.system"}, "no file reader"), ({"reader": "builtins.eval"}, "no file reader"),
    ({"reader": "HuggingFaceDatasetReader"}, "Use `kind: hf`"),
    ({"reader": "JsonReader"}, "Did you mean 'JsonlReader'"),
    ({"arguments": {"adapter": "x"}}, "takes no argument 'adapter'"),
    ({"arguments": {"compresion": "gzip"}}, "Did you mean 'compression'"),
])
def test_what_a_recipe_may_not_say(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Datatrove(source="s", **settings)
