"""Hugging Face datasets in local folders: layouts, splits, configurations, what goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.sources import HuggingFace, Jsonl, discover, files_of
from tests.sources.helpers import run, texts

CARD = """---
configs:
- config_name: a
  data_files: a/*.jsonl
- config_name: b
  data_files:
  - split: validation
    path: b/*.jsonl
---
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    datasets.disable_progress_bars()
    folder = tmp_path_factory.mktemp("hub")
    table = datasets.Dataset.from_dict({
        "text": [f"text {n}" for n in range(450)], "id": list(range(450)), "lang": ["en"] * 450})
    small = table.select(range(3))
    table.save_to_disk(str(folder / "saved"))
    datasets.DatasetDict({"train": table, "test": small}).save_to_disk(str(folder / "splits"))
    for name in ("parquet", "json", "configs/a", "configs/b", "bad"):
        (folder / name).mkdir(parents=True)
    table.to_parquet(str(folder / "parquet" / "train-0.parquet"))
    small.to_parquet(str(folder / "parquet" / "train-1.parquet"))
    small.to_parquet(str(folder / "parquet" / "test-0.parquet"))
    table.to_json(str(folder / "json" / "data.jsonl"))
    small.to_json(str(folder / "configs" / "a" / "x.jsonl"))
    small.to_json(str(folder / "configs" / "b" / "y.jsonl"))
    (folder / "configs" / "README.md").write_text(CARD)
    (folder / "bad" / "x.jsonl").write_text('{"text": "good"}\n{"text": \n')
    return folder


def read(folder: Path, **settings: Any) -> tuple[list[dict[str, Any]], list[str]]:
    reader = HuggingFace(source="s", root=str(folder), **settings)
    documents: list[dict[str, Any]] = []
    reasons: list[str] = []
    for file in files_of(reader, str(folder)):
        assert file.size > 0
        good, bad = run(reader, file.path)
        documents += good
        reasons += [record.reason for record in bad]
    return documents, reasons


@pytest.mark.parametrize(("name", "settings", "rows"), [
    ("saved", {}, 450), ("splits", {}, 450), ("splits", {"split": "test"}, 3), ("parquet", {}, 453),
    ("parquet", {"split": "test"}, 3), ("json", {}, 450), ("configs", {"config": "a"}, 3),
    ("configs", {"config": "b", "split": "validation"}, 3),
])
def test_layouts(folders: Path, name: str, settings: dict[str, Any], rows: int) -> None:
    documents, bad = read(folders / name, language_field="lang", metadata_fields=("id",), **settings)
    assert len(documents) == rows and not bad
    assert texts(documents)[:3] == ["text 0", "text 1", "text 2"]
    assert {(d["language"], d["metadata"][:5]) for d in documents} == {("en", '{"id"')}


def test_ids_are_names_inside_the_dataset(folders: Path) -> None:
    documents, _ = read(folders / "splits", id_field="none")
    assert documents[449]["id"].startswith("train/data-00000") and documents[449]["id"].endswith(":450")


def test_files_found_by_their_endings_give_only_the_split(folders: Path) -> None:
    reader = HuggingFace(source="s", root=str(folders / "parquet"), split="test")
    found = {file.path.rsplit("/", 1)[-1]: len(run(reader, file.path)[0])
             for file in discover(str(folders / "parquet"), reader.suffixes)}
    assert found == {"test-0.parquet": 3, "train-0.parquet": 0, "train-1.parquet": 0}
    assert files_of(Jsonl(source="s"), str(folders / "json"))[0].path.endswith("data.jsonl")


def test_what_is_wrong_is_said(folders: Path) -> None:
    with pytest.raises(RecipeError, match=r"no split 'dev'.*train, test"):
        read(folders / "splits", split="dev")
    with pytest.raises(RecipeError, match=r"Config name is missing.*Set `config`"):
        read(folders / "configs")
    documents, bad = read(folders / "json", text_field="body")
    assert not documents and bad == ["no column `body`; columns: text, id, lang"]
    _, bad = read(folders / "bad")
    assert len(bad) == 1 and "cannot be read" in bad[0]
    (folders / "empty").mkdir()
    with pytest.raises(SourceError, match="cannot open this dataset"):
        read(folders / "empty")
    with pytest.raises(SourceError, match=r"hf://nobody/nothing: .*HF_HUB_OFFLINE"):
        HuggingFace(source="s", root="hf://nobody/nothing").files("hf://nobody/nothing")
