"""The review of a finished corpus: counts, places, passages side by side, and hostile text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from roots_pipeline import stage_table
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.decontamination.passages import common_passages, read
from roots_pipeline.decontamination.review import write_review
from roots_pipeline.decontamination.stage import Decontaminate
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from tests.decontamination.corpora import write_set
from tests.decontamination.test_stage import FILLER, LICENCE, QUESTION
from tests.report.strict_html import Page

EVIL = "<script>alert(1)</script> \u202e"
CLOCK = ("The clock of the old tower strikes thirteen <b>times</b> on the eve of the fair because the keeper once lost "
         "a wager with the miller of the lower village")


def make_corpus(folder: Path, monkeypatch: pytest.MonkeyPatch, rejected_text: str = "full", **settings: Any) -> str:
    """A corpus from a handful of documents: two hold items, one holds two of them."""
    monkeypatch.setitem(stage_table.STAGES, Decontaminate.name, Decontaminate)
    write_set(folder, "tower", [{"id": "t1", "text": CLOCK}, {"id": "t2", "text": "Why?"}])
    write_set(folder, "honey", [{"id": EVIL, "text": QUESTION}, {"id": "copy", "text": QUESTION.upper()}])
    documents = [("one", FILLER + CLOCK.upper(), "en"), ("two", f"{EVIL} {QUESTION}\n{FILLER}\n{CLOCK}", "en"),
                 ("three", FILLER, "fr"), ("four", LICENCE, "fr")]
    write_set(folder, "documents", [{"id": name, "text": text, "lang": lang} for name, text, lang in documents])
    recipe = {"corpus": {
        "sources": [{"name": "pages", "kind": "jsonl", "path": str(folder / "documents.jsonl"),
                     "language_field": "lang"}],
        "stages": [{"stage": "decontaminate", "evaluations": [
            {"name": name, "path": str(folder / f"{name}.jsonl")} for name in ("tower", "honey")], **settings}],
        "rejected_text": rejected_text, "allow_empty": True,
    }}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    corpus = str(folder / "corpus")
    with LocalEngine(1, Progress(quiet=True)) as engine:
        run_corpus(load_corpus_recipe(str(folder / "recipe.yaml")), corpus, engine, Progress(quiet=True))
    return corpus


def test_counts_places_and_passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make_corpus(tmp_path, monkeypatch)
    page = Path(write_review(corpus)).read_text("utf-8")
    shown = Page(page)
    assert ["tower", "2", "0", "1", "0", "1", "50.0%", "2", "dropped 2"] in shown.tables["Items"]
    assert ["honey", "2", "1", "0", "0", "1", "50.0%", "1", "dropped 1"] in shown.tables["Items"]
    assert ["pages", "en", "2", "1"] in shown.tables["tower"]
    assert "<script" not in page and "\u202e" not in page
    assert page.count("<b>") >= 6
    counts = {entry["name"]: entry for entry in json.loads(Path(corpus, "contamination.json").read_text())}
    assert counts["tower"]["places"] == [{"source": "pages", "language": "en", "documents": 2, "items": 1}]
    assert counts["tower"]["items_found"] == 1 and counts["tower"]["too_short"] == 1
    hits = pq.read_table(Path(corpus, "contamination.parquet")).to_pylist()
    assert {(hit["document"], hit["evaluation"], hit["item"]) for hit in hits} == {
        ("one", "tower", "t1"), ("two", "tower", "t1"), ("two", "honey", EVIL)}
    assert {hit["share"] for hit in hits} == {1.0}
    assert all(hit["item_passage"] in (CLOCK, QUESTION) for hit in hits)
    assert write_review(corpus) == str(Path(corpus, "contamination.html"))
    assert Path(corpus, "contamination.html").read_text("utf-8") == page


def test_runs_do_not_depend_on_workers_and_notice_changed_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_corpus(tmp_path, monkeypatch)
    recipe = load_corpus_recipe(str(tmp_path / "recipe.yaml"))
    with LocalEngine(2, Progress(quiet=True)) as engine:
        again = run_corpus(recipe, str(tmp_path / "again"), engine, Progress(quiet=True))
    first = read_manifest(corpus)
    assert {name: entry["xxh3"] for name, entry in again.files.items()} == {
        name: entry["xxh3"] for name, entry in first.files.items()}
    assert first.counts["rejected"] == 2
    with LocalEngine(1, Progress(quiet=True)) as engine:
        run_corpus(recipe, corpus, engine, Progress(quiet=True))
        assert engine.tasks_run == 0
        write_set(tmp_path, "tower", [{"id": "t1", "text": LICENCE}])
        changed = run_corpus(recipe, corpus, engine, Progress(quiet=True))
        assert engine.tasks_run > 0
    rejected = pq.read_table(Path(corpus, "rejected")).to_pylist()
    assert {row["id"]: row["cause"] for row in rejected} == {"two": f"honey/{EVIL}", "four": "tower/t1"}
    assert changed.fingerprint != first.fingerprint


@pytest.mark.parametrize(("settings", "outcome"), [({"action": "report"}, "reported"),
                                                  ({"action": "cut", "shortest_rest": 5}, "cut")])
def test_documents_that_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], outcome: str
) -> None:
    corpus = make_corpus(tmp_path, monkeypatch, **settings)
    page = Path(write_review(corpus, str(tmp_path / "review"))).read_text("utf-8")
    assert ["tower", "2", "0", "1", "0", "1", "50.0%", "2", f"{outcome} 2"] in Page(page).tables["Items"]
    assert ("was cut out of this document" in page) == (outcome == "cut")
    hits = pq.read_table(tmp_path / "review" / "contamination.parquet").to_pylist()
    assert {hit["share"] for hit in hits} == {None if outcome == "cut" else 1.0}


def test_texts_that_were_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make_corpus(tmp_path, monkeypatch, rejected_text="none")
    assert "not in what was stored" in Path(write_review(corpus)).read_text("utf-8")


def test_the_sample_of_hits_follows_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make_corpus(tmp_path, monkeypatch)
    pages = [Path(write_review(corpus, examples=1, seed=seed)).read_text("utf-8") for seed in (1, 1, 2, 3, 4, 5)]
    assert pages[0] == pages[1]
    assert len({page[page.index("Hits to judge</h2>") :].replace("(seed", "") for page in pages}) > 1
    assert all("1 of 2" in page for page in pages)


def test_what_does_not_fit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make_corpus(tmp_path, monkeypatch)
    write_set(tmp_path, "tower", [{"id": "t1", "text": CLOCK + "!"}])
    with pytest.raises(StaleDataError, match="changed since this corpus was made"):
        write_review(corpus)
    with pytest.raises(StaleDataError, match="no finished result"):
        write_review(str(tmp_path / "nowhere"))


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    write_set(tmp_path, "documents", [{"id": "a", "text": FILLER}])
    source = {"name": "pages", "kind": "jsonl", "path": str(tmp_path / "documents.jsonl")}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": []}}))
    with LocalEngine(1, Progress(quiet=True)) as engine:
        run_corpus(load_corpus_recipe(str(tmp_path / "recipe.yaml")), str(tmp_path / "corpus"), engine,
                   Progress(quiet=True))
    with pytest.raises(StaleDataError, match="not compared with any evaluation set"):
        write_review(str(tmp_path / "corpus"))


def test_passages_show_the_longest_shared_stretch() -> None:
    before, after = "alpha " * 300, "omega " * 300
    common = common_passages(read(f"{before}{QUESTION} {after}"), read("Question: " + QUESTION), 13)
    assert [part.text for part in common.item if part.shared] == [QUESTION]
    assert [part.text for part in common.document if part.shared] == [QUESTION]
    assert common.document[0].text == common.document[-1].text == "…"
    assert 0.9 < common.share < 1
    assert common_passages(read(before), read(QUESTION), 13).share == 0
    assert common_passages(read(""), read("a b"), 13) == ([], [("a b", False)], 0.0)
    assert common_passages(read("say: 你好 你好!"), read("你好"), 13).share == 1
