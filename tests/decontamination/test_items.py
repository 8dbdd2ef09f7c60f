"""Evaluation sets from every kind of file, and what goes wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from roots_pipeline.core.errors import SourceError
from roots_pipeline.decontamination.evaluations import Evaluation, content_of
from roots_pipeline.decontamination.items import Item, read_items

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "question": "How many?", "answers": {"text": ["four", "4"]}, "n": 4},
    {"id": 7, "question": "Wh\u2028y\u0085?", "answers": {"text": []}, "n": 2.5},
    {"question": "Ελλάδα 你好", "answers": {"text": ["yes"]}, "n": None},
]
FIELDS = ("question", "answers.text", "n")
LINES = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS).encode()


def expected(name: str, parquet: bool = False) -> list[Item]:
    texts = ["How many?\nfour\n4\n4" + (".0" if parquet else ""), "Wh\u2028y\u0085?\n2.5", "Ελλάδα 你好\nyes"]
    return [Item(*pair) for pair in zip(["a", "7", f"{name}:3"], texts, strict=True)]


@pytest.mark.parametrize(("name", "content"), [
    ("set.jsonl", LINES),
    ("set.json", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n\n")),
    ("set.jsonl.gz", gzip.compress(LINES)),
    ("set.ndjson.zst", zstandard.compress(LINES)),
])
def test_json_lines(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    number = 5 if b"\r\n\n" in content else 3
    items = read_items(Evaluation("s", str(tmp_path), FIELDS))
    assert items == [*expected(name)[:2], expected(name)[2]._replace(id=f"{name}:{number}")]
    assert read_items(Evaluation("s", str(tmp_path / name), ("question",)))[0] == Item("a", "How many?")


def test_parquet(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{**record, "id": str(record["id"]) if "id" in record else None, "other": b"\xff"}
                                  for record in RECORDS])
    pq.write_table(table, tmp_path / "set.parquet", row_group_size=2)
    assert read_items(Evaluation("s", str(tmp_path / "set.parquet"), FIELDS)) == expected("set.parquet", parquet=True)


def test_datasets_on_disk(tmp_path: Path) -> None:
    import datasets

    made = datasets.Dataset.from_list([
        {"question": record["question"], "answers": record["answers"], "name": f"q{k}"}
        for k, record in enumerate(RECORDS)
    ])
    made.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": made.select([2]), "test": made.select([0, 1])}).save_to_disk(tmp_path / "two")
    fields = ("question", "answers.text")
    one = read_items(Evaluation("s", str(tmp_path / "one"), fields, id_field="name"))
    assert one == [Item("q0", "How many?\nfour\n4"), Item("q1", "Wh\u2028y\u0085?"), Item("q2", "Ελλάδα 你好\nyes")]
    two = Evaluation("s", str(tmp_path / "two"), fields, splits=("test",))
    assert [item.id for item in read_items(two)] == ["test:1", "test:2"]
    assert len(read_items(Evaluation("s", str(tmp_path / "two"), fields))) == 3
    with pytest.raises(SourceError, match=r"no split 'tset'. Did you mean 'test'"):
        read_items(Evaluation("s", str(tmp_path / "two"), fields, splits=("tset",)))
    before = content_of((two,))
    datasets.DatasetDict({"train": made.select([2]), "test": made.select([1])}).save_to_disk(tmp_path / "two")
    assert content_of((two,)) != before


def test_folders_in_a_layout_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    datasets.disable_progress_bars()
    for name, records in (("main/train", RECORDS[2:]), ("main/test", RECORDS[:2]), ("more/test", RECORDS)):
        path = tmp_path / "set" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({**record, "id": f"{name}-{k}"}) + "\n" for k, record in enumerate(records)))
    (tmp_path / "set" / "README.md").write_text("""---
configs:
- config_name: main
  data_files: [{split: train, path: main/train.jsonl}, {split: test, path: main/test.jsonl}]
- config_name: more
  data_files: [{split: test, path: more/test.jsonl}]
---
""")
    def ids(**settings: Any) -> list[str]:
        return [item.id for item in read_items(Evaluation("s", str(tmp_path / "set"), FIELDS, **settings))]

    assert ids(config="main") == ["main/train-0", "main/test-0", "main/test-1"]
    assert ids(config="main", splits=("test",)) == ["main/test-0", "main/test-1"]
    assert ids(config="more", splits=("test",)) == ["more/test-0", "more/test-1", "more/test-2"]
    texts = [item.text for item in read_items(Evaluation("s", str(tmp_path / "set"), FIELDS, config="more"))]
    assert texts[0].split() == ["How", "many?", "four", "4", "4.0"]
    with pytest.raises(SourceError, match=r"no split 'tset'. Did you mean 'test'"):
        ids(config="main", splits=("tset",))
    with pytest.raises(SourceError, match="cannot be opened"):
        ids(config="other")
    with pytest.raises(SourceError, match=r"main/test.jsonl:1: this record has no field 'quest'"):
        read_items(Evaluation("s", str(tmp_path / "set"), ("quest",), config="main", splits=("test",)))
    evaluation = Evaluation("s", str(tmp_path / "set"), FIELDS, config="main")
    before = content_of((evaluation,))
    (tmp_path / "set" / "main" / "test.jsonl").write_text(json.dumps({**RECORDS[0], "question": "Other?"}) + "\n")
    assert content_of((evaluation,)) != before
    assert ids(config="main") == ["main/train-0", "a"]
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(SourceError, match="cannot be opened"):
        read_items(Evaluation("s", "hf://rootbloom/there-is-no-such-set", FIELDS))


def test_other_file_systems(sample: Path) -> None:
    items = read_items(Evaluation("code", "package://sample/eval/code.jsonl"))
    assert items == read_items(Evaluation("code", str(sample / "eval" / "code.jsonl")))
    assert [item.id for item in items][:2] == ["code-01", "code-02"]
    with fsspec.open("memory://sets/set.jsonl", "wb") as out:
        out.write(LINES)
    evaluation = Evaluation("s", "memory://sets/*.jsonl", FIELDS)
    assert read_items(evaluation) == expected("set.jsonl")
    before = content_of((evaluation,))
    with fsspec.open("memory://sets/set.jsonl", "wb") as out:
        out.write(LINES.replace(b"many", b"much"))
    assert content_of((evaluation,)) != before


@pytest.mark.parametrize(("content", "fields", "message"), [
    (LINES, ("questoin",), r"set\.jsonl:1: this record has no field 'questoin'; its fields are 'id', 'question', "
                           r"'answers', 'n'\. Did you mean 'question'\?"),
    (LINES, ("answers.txt",), r"has no field 'txt'; its fields are 'text'"),
    (LINES, ("answers",), r"field 'answers' is an object, not text\. Name a field inside it, such as 'answers\.text'"),
    (LINES + b'{"question": true}\n', ("question",), r"set\.jsonl:4: field 'question' is a boolean"),
    (LINES + b"{question}\n", ("question",), r"set\.jsonl:4: .*not valid JSON"),
    (LINES + b'["question"]\n', ("question",), r"set\.jsonl:4: .*a list, not an object"),
    (LINES + b'{"question": "\xff"}\n', ("question",), r"set\.jsonl:4: .*not valid JSON"),
    (b"", ("question",), r"evaluation set 's' is empty: no record"),
    (b'{"question": " "}\n{"question": null}\n', ("question",), r"none of its 2 records has text in 'question'"),
])
def test_what_cannot_be_read_is_an_error(
    tmp_path: Path, content: bytes, fields: tuple[str, ...], message: str
) -> None:
    (tmp_path / "set.jsonl").write_bytes(content)
    with pytest.raises(SourceError, match=message):
        read_items(Evaluation("s", str(tmp_path / "set.jsonl"), fields))


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl.gz").write_bytes(gzip.compress(LINES)[:-20])
    with pytest.raises(SourceError, match="cut off inside a gzip stream"):
        read_items(Evaluation("s", str(tmp_path / "set.jsonl.gz"), ("question",)))
    (tmp_path / "set.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match="not a whole Parquet file"):
        read_items(Evaluation("s", str(tmp_path / "set.parquet"), ("question",)))
    pq.write_table(pa.table({"text": ["a"], "id": ["b"]}), tmp_path / "set.parquet")
    with pytest.raises(SourceError, match=r"no field 'question'; its fields are 'text', 'id'"):
        read_items(Evaluation("s", str(tmp_path / "set.parquet"), ("question",)))


def test_paths_and_splits_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        read_items(Evaluation("s", str(tmp_path / "nothing")))
    with pytest.raises(SourceError, match="empty"):
        read_items(Evaluation("s", str(tmp_path)))
    (tmp_path / "set.csv").write_text("question\n")
    with pytest.raises(SourceError, match=r"none of 1 files ends in"):
        read_items(Evaluation("s", str(tmp_path)))
    (tmp_path / "set.jsonl").write_bytes(LINES)
    with pytest.raises(SourceError, match="has no splits"):
        read_items(Evaluation("s", str(tmp_path / "set.jsonl"), ("question",), splits=("test",)))
