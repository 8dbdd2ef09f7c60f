"""What evaluation says of items that a corpus holds, on corpora that the corpus step made; and when it says nothing."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

from mixtures.lock import NAME, FileFacts, GroupFacts, Lock, write_lock
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.evaluation_records import NAME as EVALUATIONS
from roots_pipeline.core.evaluation_records import record_key
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.decontamination.review import write_review
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from tests.decontamination.test_stage import FILLER, QUESTION
from train.evaluation.contamination import Contamination, Trained, _held, contamination
from train.evaluation.scores import as_text, scores_of
from train.evaluation.tasks import Item, TaskConfig, read_items

CLOCK = ("The clock of the old tower strikes thirteen times on the eve of the fair because the keeper once lost a "
         "wager with the miller of the lower village")  # fmt: skip
BARGE = ("A barge laden with slate drifted past the weir before dawn and nobody aboard could say where the pilot had "
         "gone or when")  # fmt: skip
TOWER: list[dict[str, Any]] = [
    {"id": "t1", "text": CLOCK},
    {"id": "t2", "text": "Why?"},
    {"id": 3, "text": CLOCK + " and the baker"},
]
SPREAD = [{"text": QUESTION}, {"text": BARGE}, {"text": BARGE.replace("slate", "salt")}]


def lines(records: Sequence[Mapping[str, object]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus that holds t1, the barge (in two documents), and parts of their twins."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tower.jsonl").write_bytes(lines(TOWER))
    (folder / "spread" / "deep").mkdir(parents=True)
    (folder / "spread" / "b.jsonl.gz").write_bytes(gzip.compress(b"\n" + lines(SPREAD[:1])))
    (folder / "spread" / "a.jsonl.zst").write_bytes(zstandard.compress(lines(SPREAD[1:2])))
    pq.write_table(pa.Table.from_pylist(SPREAD[2:]), folder / "spread" / "deep" / "c.parquet")
    (folder / "spread" / ".hidden.jsonl").write_bytes(b"no JSON")
    (folder / "spread" / "notes.txt").write_bytes(b"no records")
    documents = [
        {"id": "one", "text": FILLER + CLOCK},
        {"id": "two", "text": f"{BARGE}\n{FILLER}"},
        {"id": "three", "text": f"{FILLER}\n{BARGE}\n{FILLER[::-1]}"},
        {"id": "four", "text": FILLER},
    ]
    (folder / "documents.jsonl").write_bytes(lines(documents))
    recipe = {"corpus": {
        "sources": [{"name": "pages", "kind": "jsonl", "path": str(folder / "documents.jsonl"), "language": "en"}],
        "stages": [
            {"stage": "decontaminate", "evaluations": [{"name": "tower", "path": str(folder / "tower.jsonl")}]},
            {"stage": "decontaminate", "action": "report",
             "evaluations": [{"name": "spread", "path": str(folder / "spread")}]},
        ],
    }}  # fmt: skip
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    with LocalEngine(1, Progress(quiet=True)) as engine:
        run_corpus(
            load_corpus_recipe(str(folder / "recipe.yaml")), str(folder / "corpus"), engine, Progress(quiet=True)
        )
    note_corpus(folder)
    return folder


def note_corpus(run: Path, fingerprint: str | None = None) -> None:
    """The lock of a mixture of this corpus, as training leaves it beside the model."""
    (run / "model").mkdir(exist_ok=True)
    corpus = fingerprint or read_manifest(str(run / "corpus")).fingerprint
    facts = dict.fromkeys((".bin", ".idx", ".documents.parquet"), FileFacts(1, "", ""))
    group = GroupFacts("pages.en", 1.0, 1, 1, 1, 1, 0, 0, facts)
    split = {"method": "none"}
    write_lock(
        str(run / "model" / NAME), Lock(corpus, "", 9, 0, "uint16", 4, 0, "bigscience", split, {"pages.en": group})
    )


def task(file: Path, **more: Any) -> tuple[TaskConfig, list[Item]]:
    settings = {"name": file.stem, "kind": "text", "file": file.name, "context": "{text}", **more}
    config = TaskConfig.model_validate(settings)
    return config, read_items(config, file.parent)


def known(folder: Path, file: Path, **more: Any) -> Contamination:
    found = contamination(Trained(folder), *task(file, **more))
    assert isinstance(found, Contamination), found
    return found


def reason(folder: Path, file: Path, **more: Any) -> str:
    found = contamination(Trained(folder), *task(file, **more))
    assert isinstance(found, str), found
    return found


def test_found_items_of_a_file_with_ids(made: Path, tmp_path: Path) -> None:
    """All lines, some of them in another order and form, and lines that nobody looked for."""
    found = known(made, made / "tower.jsonl")
    assert 0 in found.found and 1 not in found.found
    assert (found.searched, found.documents, found.action, found.unsearchable) == (3, 1, "drop", None)
    other = tmp_path / "tower.jsonl"
    other.write_text('{"text": "new"}\n' + json.dumps({"text": CLOCK, "id": "t1"}, indent=None) + "\n")
    found = known(made, other)
    assert (found.searched, found.found) == (1, (1,))
    assert found.sentence(2).startswith("1 of the 1 (of 2) looked for items found in the corpus (100.0%)")
    facts = found.facts(2)
    assert (facts["share"], facts["not_searched"], facts["searched"]) == (1.0, 1, 1)


def test_found_items_of_a_folder_without_ids(made: Path, tmp_path: Path) -> None:
    """Files packed in several ways; an item is called by its file and record."""
    file = tmp_path / "spread.jsonl"
    file.write_bytes(lines(SPREAD))
    found = known(made, file)
    assert found.searched == 3 and 1 in found.found and 0 not in found.found
    assert (found.documents, found.action) == (2, "report") and "were kept" in found.sentence(3)
    renamed = tmp_path / "mine.jsonl"
    shutil.copy(file, renamed)
    assert known(made, renamed, evaluation="spread") == found


def test_a_set_is_found_by_its_records_too(made: Path, tmp_path: Path) -> None:
    """Most of the lines decide, and the file may be a copy under another name."""
    found = contamination(Trained(made), *task(made / "tower.jsonl", name="clock"))
    assert isinstance(found, Contamination) and found.evaluation == "tower"
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_bytes(lines([TOWER[0], *SPREAD[:2], {"text": "new"}]))
    found = known(made, mixed)
    assert (found.evaluation, found.searched, found.found) == ("spread", 2, (2,))


def test_the_review_tells_what_cannot_be_found(made: Path) -> None:
    write_review(str(made / "corpus"))
    try:
        found = known(made, made / "tower.jsonl")
        assert found.unsearchable == 1 and "of the set 1 are too short or too common" in found.sentence(3)
    finally:
        for path in (made / "corpus").glob("contamination.*"):
            path.unlink()


def test_nothing_is_called_clean_that_nobody_looked_for(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "tower.jsonl"
    other.write_text('{"text": "new"}\n')
    assert reason(made, other) == "none of its lines is a record of the evaluation set tower"
    stranger = tmp_path / "stranger.jsonl"
    shutil.copy(other, stranger)
    assert "not compared with a set called stranger (its sets: tower, spread)" in reason(made, stranger)
    assert "a set called towr" in reason(made, made / "tower.jsonl", evaluation="towr")
    assert "nobody knows" in str(contamination(None, *task(other)))
    assert "not noted which corpus" in str(contamination(Trained(tmp_path), *task(other)))
    note_corpus(tmp_path, "another")
    assert "manifest" in str(contamination(Trained(tmp_path), *task(other)))


def test_another_corpus_than_the_model_was_trained_on(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "corpus", tmp_path / "corpus")
    note_corpus(tmp_path, "another")
    assert reason(tmp_path, made / "tower.jsonl") == "the run's corpus is not the one that the model was trained on"
    found = contamination(Trained(made, origin="abc"), *task(made / "tower.jsonl"))
    assert isinstance(found, Contamination) and found.facts(3)["origin"] == "abc"
    assert "what the weights that it began with had seen is unknown" in found.sentence(3)


def test_sets_are_not_read_again(made: Path, tmp_path: Path) -> None:
    """The corpus tells all, wherever the files of the sets are by now; without its file nothing is known."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    manifest = copy / "corpus" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(made), "s3://somewhere/else"))
    expected = known(made, made / "tower.jsonl")
    assert known(copy, made / "tower.jsonl") == expected
    facts = orjson.loads(manifest.read_bytes())
    (copy / "corpus" / EVALUATIONS).write_bytes(b"PAR1 cut")
    again = f"{EVALUATIONS} is not what the corpus step wrote; run the corpus step again"
    assert reason(copy, made / "tower.jsonl") == again
    (copy / "corpus" / EVALUATIONS).unlink()
    assert reason(copy, made / "tower.jsonl") == again
    del facts["files"][EVALUATIONS]
    manifest.write_bytes(orjson.dumps(facts))
    assert "made before" in (found := reason(copy, made / "tower.jsonl")) and "run the corpus step again" in found
    facts["config"]["stages"] = []
    manifest.write_bytes(orjson.dumps(facts))
    assert "not compared with any evaluation set" in reason(copy, made / "tower.jsonl")


def other_corpus(folder: Path, stages: list[dict[str, Any]], *sources: dict[str, Any]) -> Path:
    """A run with a corpus of the same documents and other stages."""
    page = {"name": "pages", "kind": "jsonl", "path": str(folder / "documents.jsonl"), "language": "en"}
    (folder / "recipe.yaml").write_text(yaml.safe_dump({"corpus": {"sources": [page, *sources], "stages": stages}}))
    with LocalEngine(1, Progress(quiet=True)) as engine:
        recipe = load_corpus_recipe(str(folder / "recipe.yaml"))
        run_corpus(recipe, str(folder / "corpus"), engine, Progress(quiet=True))
    note_corpus(folder)
    return folder


@pytest.fixture
def inputs(made: Path, tmp_path: Path) -> Path:
    for name in ("documents.jsonl", "tower.jsonl"):
        shutil.copy(made / name, tmp_path / name)
    return tmp_path


def decontaminate(*evaluations: tuple[str, Path], **settings: Any) -> dict[str, Any]:
    sets = [{"name": name, "path": str(path)} for name, path in evaluations]
    return {"stage": "decontaminate", "evaluations": sets, **settings}


def test_items_with_the_same_words_are_found_together(inputs: Path) -> None:
    """The corpus names the first of them; ids that records share are no names."""
    records = [TOWER[0], {"id": "t1", "text": BARGE + " again and never more"}, {"id": "t9", "text": CLOCK.upper()}]
    (inputs / "tower.jsonl").write_bytes(lines(records))
    found = known(other_corpus(inputs, [decontaminate(("tower", inputs / "tower.jsonl"))]), inputs / "tower.jsonl")
    assert (found.searched, found.documents) == (3, 3) and set(found.found) == {0, 1, 2}
    (inputs / "documents.jsonl").write_bytes(lines([{"id": "one", "text": CLOCK}, {"id": "two", "text": FILLER}]))
    found = known(other_corpus(inputs, [decontaminate(("tower", inputs / "tower.jsonl"))]), inputs / "tower.jsonl")
    assert (found.searched, found.documents, found.found) == (3, 1, (0, 2))


def test_a_set_of_two_stages(inputs: Path) -> None:
    """The same set in both is one set; different ones under one name are none that anything is known of."""
    own, same = inputs / "tower.jsonl", ("tower", inputs / "tower.jsonl")
    stages = [decontaminate(same, action="report"), decontaminate(same, rule="jaccard", threshold=0.1)]
    found = known(other_corpus(inputs, stages), own)
    assert found.action == "report, drop" and 0 in found.found and "were kept or dropped" in found.sentence(3)
    (inputs / "barge.jsonl").write_bytes(lines([{"id": "t1", "text": BARGE}]))
    stages[1] = decontaminate(("tower", inputs / "barge.jsonl"))
    assert "different sets called tower" in reason(other_corpus(inputs, stages), own)


def test_groups_that_were_not_compared_are_named(inputs: Path) -> None:
    code = {"name": "code", "kind": "jsonl", "path": str(inputs / "documents.jsonl"), "language": "en", "group": "code"}
    run = other_corpus(inputs, [decontaminate(("tower", inputs / "tower.jsonl"), groups=["web"])], code)
    found = known(run, inputs / "tower.jsonl")
    assert found.facts(3)["not_compared"] == ["code"]
    assert "documents of code were not compared with it" in found.sentence(3)


def test_a_document_that_holds_more_items_than_it_names(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inputs / "tower.jsonl").write_bytes(lines([TOWER[0], {"id": "t4", "text": BARGE}, {"id": "t5", "text": QUESTION}]))
    (inputs / "documents.jsonl").write_bytes(lines([{"id": "one", "text": f"{CLOCK}\n{BARGE}"},
                                                    {"id": "two", "text": FILLER}]))
    run = other_corpus(inputs, [decontaminate(("tower", inputs / "tower.jsonl"))])
    assert len(known(run, inputs / "tower.jsonl").found) == 2
    _held.cache_clear()
    monkeypatch.setattr("train.evaluation.contamination.MOST_ITEMS", 2)
    assert "holds 2 items or more and names no others" in reason(run, inputs / "tower.jsonl")
    _held.cache_clear()


def test_damaged_documents(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "corpus", tmp_path / "corpus")
    note_corpus(tmp_path)
    for path in (tmp_path / "corpus" / "rejected").glob("*.parquet"):
        path.write_bytes(b"PAR1 cut")
    assert "the corpus cannot be read" in reason(tmp_path, made / "tower.jsonl")


def test_scores_without_the_found_items_are_those_of_the_others() -> None:
    choice = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    assert scores_of("choice", choice)["acc"] == pytest.approx(2 / 3)
    assert scores_of("choice", choice[1:])["acc"] == 0.5 and scores_of("choice", choice[2:])["items"] == 1
    assert scores_of("cloze", [(-2000.0, 0.0)])["perplexity"] > 1e300
    text = scores_of("text", [(-8.0, 4.0, 2.0), (-2.0, 1.0, 1.0)])
    assert text == scores_of("text", [(-10.0, 5.0, 3.0)]) | {"items": 2}


def test_table_for_people(made: Path) -> None:
    found = known(made, made / "tower.jsonl")
    outcomes = [(1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]
    beside = {**found.facts(3), "sentence": found.sentence(3), "without_found": scores_of("choice", outcomes[1:])}
    work = {"kind": "choice", "tokens_computed": 1, "tokens_one_by_one": 4000}
    results: dict[str, Any] = {
        "a": {**scores_of("choice", outcomes), **work, "contamination": beside},
        "b": {**scores_of("choice", outcomes[:1]), **work, "contamination": {"known": False, "reason": "no run"}},
    }
    text = as_text(results)
    assert "acc               0.3333 ± 0.33    without the items found in the corpus: 0 ± 0" in text
    assert "contamination     unknown: no run" in text and "acc               1\n" in text


def test_records_that_say_the_same_are_equal() -> None:
    same = json.loads('{"a": "\\u00e9", "b": 1}')
    assert record_key({"b": 1, "a": "é"}) == record_key(same) != record_key({"a": "é"})
    assert len(record_key({})) == 16
    assert replace(Item("", (), (), 0), record=b"x").record == b"x"
