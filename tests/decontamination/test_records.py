"""RUN/corpus/evaluations.parquet: which record is which item, from every kind of file, and through runs of recipes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
import yaml

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.evaluation_records import NAME, RECORDS, find_records, record_key
from roots_pipeline.core.manifest import Manifest, read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Commit
from roots_pipeline.decontamination.evaluations import Evaluation, content_of
from roots_pipeline.decontamination.items import read_items
from roots_pipeline.decontamination.records import write_records
from roots_pipeline.decontamination.review import write_review
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.removal import remove_documents
from roots_pipeline.run import run_corpus
from roots_pipeline.verify import verify_corpus
from tests.decontamination.corpora import write_set
from tests.decontamination.test_stage import FILLER, LICENCE, QUESTION

RECORDS_OF_A_SET: list[dict[str, Any]] = [
    {"id": "a", "text": "How many herons sleep?", "answer": ["four", 4], "more": {"b": 1, "a": None}},
    {"id": 7, "text": "Why?", "answer": [], "more": None},
    {"text": "HOW many: herons sleep", "answer": ["five"]},
    {"id": "a", "text": "Another question with the same id"},
    {"id": "e", "text": "  "},
]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS_OF_A_SET).encode()
# Items with the same words are found as the first of them, and no two have one id.
ITEMS = ["a", "7", "a", "{}:4", "e"]


def key_of(record: dict[str, Any]) -> bytes:
    return xxhash.xxh3_128_digest(orjson.dumps(record, option=orjson.OPT_SORT_KEYS))


def written(folder: Path, *evaluations: Evaluation) -> list[tuple[str, str, bytes]]:
    path = folder / NAME
    told = write_records(Commit(), stages=[(evaluations, content_of(evaluations))], output=str(path))
    table = pq.read_table(path)
    assert table.schema.equals(RECORDS) and told["rows"] == len(table) and set(told["files"]) == {NAME}
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("name", ["set.jsonl", "deep/set.jsonl.gz", "memory"])
def test_records_of_lines(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "sets")
    target = Path(path, name)
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(LINES) if name.endswith(".gz") else LINES)
    if name == "memory":
        name, path = "set.jsonl", "memory://sets-of-records/*.jsonl"
        with fsspec.open("memory://sets-of-records/set.jsonl", "wb") as out:
            out.write(LINES)
    keys = [key_of(record) for record in RECORDS_OF_A_SET]
    expected = [("s", item.format(name), key) for item, key in zip(ITEMS, keys, strict=True)]
    assert written(tmp_path, Evaluation("s", path)) == expected


def test_records_of_parquet_have_all_columns(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{**record, "id": str(record.get("id", "")), "answer": str(record.get("answer"))}
                                  for record in RECORDS_OF_A_SET])
    pq.write_table(table, tmp_path / "set.parquet", row_group_size=2)
    keys = [key_of(record) for record in table.to_pylist()]
    expected = [("s", item.format("set.parquet"), key) for item, key in zip(ITEMS, keys, strict=True)]
    assert written(tmp_path, Evaluation("s", str(tmp_path / "set.parquet"))) == expected


def test_records_of_datasets(tmp_path: Path) -> None:
    """Saved by the library, in one of its layouts, and several sets in order."""
    import datasets

    rows = [{"id": f"q{k}", "text": record["text"], "n": k} for k, record in enumerate(RECORDS_OF_A_SET)]
    made = datasets.Dataset.from_list(rows)
    splits = {"train": made.select([4, 3]), "test": made.select([0, 1, 2])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "saved")
    layout = tmp_path / "layout" / "data"
    layout.mkdir(parents=True)
    (layout / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = written(tmp_path, Evaluation("saved", str(tmp_path / "saved"), splits=("test",)),
                    Evaluation("layout", str(tmp_path / "layout"), splits=("test",)))
    names = ["q0", "q1", "q0", "q3", "q4"]
    keys = [key_of(row) for row in rows]
    assert found == [("saved", *pair) for pair in zip(names[:3], keys[:3], strict=True)] + [
        ("layout", *pair) for pair in zip(names, keys, strict=True)]


def test_no_two_items_have_one_id(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_bytes(LINES)
    assert [item.id for item in read_items(Evaluation("s", str(tmp_path)))] == [
        "a", "7", "set.jsonl:3", "set.jsonl:4", "e"]
    places = [{"id": "set.jsonl:2", "text": "one"}, {"text": "two"}, {"id": "set.jsonl:2+", "text": "three"}]
    write_set(tmp_path, "set", places)
    assert [item.id for item in read_items(Evaluation("s", str(tmp_path)))] == [
        "set.jsonl:2", "set.jsonl:2+", "set.jsonl:3"]


def test_files_that_changed_since_the_plan(tmp_path: Path) -> None:
    write_set(tmp_path, "s", RECORDS_OF_A_SET)
    evaluations = (Evaluation("s", str(tmp_path / "s.jsonl")),)
    with pytest.raises(StaleDataError, match="changed since this run was planned"):
        write_records(Commit(), stages=[(evaluations, "another")], output=str(tmp_path / NAME))
    assert not (tmp_path / NAME).exists()


class Thing:
    """Its text has an address in it."""


def test_keys_of_what_json_has_no_form_for() -> None:
    stone = datetime(2024, 5, 1, tzinfo=UTC)
    values = [b"\xff", Decimal("1.5"), stone, np.arange(3), np.float32(0.5), Thing(), {1: 2}, 1 << 70, float("nan"),
              "half \ud800"]
    keys = [record_key({"value": value}) for value in values]
    assert len(set(keys)) == len(values) and {len(key) for key in keys} == {16}
    assert keys[5] == record_key({"value": Thing()})
    deep = orjson.loads(b'{"a":' * 900 + b"1" + b"}" * 900)
    assert record_key(deep) == record_key({"a": deep["a"]}) != record_key({"b": deep})


def run(
    folder: Path, stages: Sequence[dict[str, Any]], workers: int = 1, corpus: str = "corpus"
) -> tuple[Manifest, int]:
    """A corpus of two documents, one of which holds both sets; and how many tasks were run."""
    source = {"name": "pages", "kind": "jsonl", "path": str(folder / "documents.jsonl"), "language": "en"}
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": list(stages), "allow_empty": True}}))
    with LocalEngine(workers, Progress(quiet=True)) as engine:
        made = run_corpus(load_corpus_recipe(str(recipe)), str(folder / corpus), engine, Progress(quiet=True))
        return made, engine.tasks_run


def stage(folder: Path, *names: str, **settings: Any) -> dict[str, Any]:
    return {"stage": "decontaminate", "evaluations": [
        {"name": name, "path": str(folder / f"{name}.jsonl")} for name in names], **settings}


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    write_set(tmp_path, "honey", [{"id": "h", "text": QUESTION, "n": 1}])
    write_set(tmp_path, "licence", [{"id": "l", "text": LICENCE}])
    documents = [("one", f"{FILLER} {QUESTION}\n{FILLER}\n{LICENCE}"), ("two", FILLER * 2)]
    write_set(tmp_path, "documents", [{"id": name, "text": text} for name, text in documents])
    return tmp_path


def test_a_run_writes_the_file_once(sets: Path) -> None:
    stages = [stage(sets, "honey", "licence", action="report"), stage(sets, "licence", rule="jaccard")]
    manifest, _ = run(sets, stages)
    rows = pq.read_table(sets / "corpus" / NAME).to_pylist()
    assert [(row["set"], row["item"]) for row in rows] == [("honey", "h"), ("licence", "l")]
    assert find_records(str(sets / "corpus"), manifest, [key_of({"n": 1, "text": QUESTION, "id": "h"}), b"0" * 16]) == [
        ("honey", "h", rows[0]["record"])]
    assert run(sets, stages)[1] == 0
    run(sets, stages, workers=2, corpus="again")
    assert (sets / "again" / NAME).read_bytes() == (sets / "corpus" / NAME).read_bytes()
    (sets / "corpus" / NAME).unlink()
    assert run(sets, stages)[1] == 1 and (sets / "corpus" / NAME).is_file()


def test_a_changed_record_is_written_anew_and_no_document_is_made_stale(sets: Path) -> None:
    before, _ = run(sets, [stage(sets, "honey")])
    write_set(sets, "honey", [{"id": "h", "text": QUESTION, "n": 2}])
    after, ran = run(sets, [stage(sets, "honey")])
    assert ran > 0 and after.files[NAME] != before.files[NAME]
    assert after.fingerprint == before.fingerprint
    assert pq.read_table(sets / "corpus" / NAME).to_pylist()[0]["record"] == key_of(
        {"id": "h", "text": QUESTION, "n": 2})


def test_the_file_goes_with_the_stage(sets: Path) -> None:
    run(sets, [stage(sets, "honey")])
    manifest, _ = run(sets, [])
    assert NAME not in manifest.files and not (sets / "corpus" / NAME).exists()


def test_verify_notices_damage_and_removal_keeps_the_file(sets: Path) -> None:
    corpus = sets / "corpus"
    before, _ = run(sets, [stage(sets, "honey")])
    assert not verify_corpus(str(corpus)).problems
    remove_documents(str(corpus), ids=["two"])
    after = read_manifest(str(corpus))
    assert after.files[NAME] == before.files[NAME] and after.fingerprint != before.fingerprint
    data = (corpus / NAME).read_bytes()
    (corpus / NAME).write_bytes(data[:-9] + b"!" + data[-8:])
    assert f"{NAME} is not what was written" in verify_corpus(str(corpus)).problems[0]


@pytest.mark.parametrize("settings", [{"action": "report"}, {"action": "cut", "shortest_rest": 5}, {"action": "drop"}])
def test_what_an_earlier_stage_found_stays_noted(sets: Path, settings: dict[str, Any]) -> None:
    """Stages behind a cut scan the text anew; what they do not find must not look clean."""
    run(sets, [stage(sets, "honey", **settings), stage(sets, "licence", action="report")])
    rows = [row for part in ("documents", "rejected") for row in pq.read_table(sets / "corpus" / part).to_pylist()]
    found = {row["id"]: (row["contamination_items"], row["contamination_overlap"]) for row in rows}
    assert found["one"] == (["honey/h"] if settings["action"] == "drop" else ["licence/l", "honey/h"], 1.0)
    assert found["two"][0] is None
    write_review(str(sets / "corpus"))
    hits = pq.read_table(sets / "corpus" / "contamination.parquet").to_pylist()
    assert {hit["evaluation"] for hit in hits} == {name.split("/")[0] for name in found["one"][0]}


@pytest.mark.parametrize("order", [1, -1])
def test_jaccard_judges_by_its_own_similarity(sets: Path, order: int) -> None:
    """Beside another stage, whose overlap is in the same measure."""
    run(sets, [stage(sets, "honey", action="report"), stage(sets, "licence", rule="jaccard", action="report")][::order])
    rows = {row["id"]: row for row in pq.read_table(sets / "corpus" / "documents").to_pylist()}
    assert rows["one"]["contamination_items"] == ["honey/h"]
