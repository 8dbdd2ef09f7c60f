"""`explain` tells of any document what the tables hold, and of no document that there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from roots_pipeline.core.errors import SourceError
from roots_pipeline.explain import as_text, explain_document
from tests.pipeline.test_run import WORDS, rows, run, write_lines, write_recipe

NEAR = {"stage": "near_duplicates", "ngram": 2, "threshold": 0.5, "bands": 60, "rows": 2}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = ["one two three four five six", "one two three four five six", "x", "one two three four five seven",
             "quite \u202e another text \x1b[31m here"]
    write_lines(tmp_path / "in.jsonl", texts)
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")}
    run(write_recipe(tmp_path, [source], [*WORDS, NEAR], rejected_text="full"), tmp_path / "out")
    return tmp_path / "out"


def test_every_document_is_explained_as_the_tables_say(corpus: Path) -> None:
    for part in ("documents", "rejected"):
        for number, row in enumerate(rows(corpus, part)):
            told, = explain_document(str(corpus), row["id"])
            assert (told.file, told.row) == (f"{part}/s-00000.parquet", number)
            assert (told.verdict, told.cause) == (row.get("verdict"), row.get("cause"))
            assert {measure.name: measure.value for measure in told.measures}["word_count"] == row["word_count"]
            assert told.inputs == [str(corpus.parent / "in.jsonl")]


def test_limits_causes_and_pairs(corpus: Path) -> None:
    short, = explain_document(str(corpus), "d2")
    count = next(measure for measure in short.measures if measure.name == "word_count")
    assert (count.value, count.minimum, count.maximum, count.outside) == (1, 3, None, True)
    copy, = explain_document(str(corpus), "d1")
    assert copy.other is not None and copy.other["id"] == "d0" and copy.other["verdict"] is None
    near, = explain_document(str(corpus), "d3")
    assert near.verdict == "near_duplicates" and near.pairs[0]["other"] == "d0"
    assert near.pairs[0]["jaccard"] == pytest.approx(4 / 6)
    for told in (short, copy, near):
        assert as_text(told).startswith(f"{told.identity['id']}: dropped: {told.verdict}")


def test_limits_are_those_of_the_documents_group(tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", ["one two three four five six"])
    sources = [{"name": name, "kind": "jsonl", "path": str(tmp_path / "in.jsonl"), "group": name}
               for name in ("web", "books")]
    stages = [{"stage": "massivetext"}, *({"stage": "thresholds", "groups": [name], "preset": "", "limits": {
        "default": {"word_count": [least, None]}}} for name, least in (("web", 3), ("books", 5)))]
    run(write_recipe(tmp_path, sources, stages), tmp_path / "out")
    found = {told.identity["source"]: {measure.name: measure.minimum for measure in told.measures}["word_count"]
             for told in explain_document(str(tmp_path / "out"), "d0")}
    assert found == {"web": 3, "books": 5}


def test_hostile_text_cannot_write_to_a_terminal(corpus: Path) -> None:
    told, = explain_document(str(corpus), "d4")
    shown = as_text(told)
    assert "\x1b" not in shown and "\u202e" not in shown and "\\x1b" in shown


def test_an_unknown_id_is_a_sentence(corpus: Path) -> None:
    with pytest.raises(SourceError, match="no document has the id 'nobody'"):
        explain_document(str(corpus), "nobody")
