"""A new corpus against hashes and signatures of an old one: brute force, whole runs, references that do not fit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from roots_pipeline import stage_table
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import EmptyOutputError, RecipeError, StaleDataError
from roots_pipeline.core.progress import Progress
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.reference import read_reference, rows_with_keys, write_reference
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from roots_pipeline.text.minhash import jaccard
from tests.dedup import driver
from tests.dedup.driver import document
from tests.dedup.test_minhash import SURE, edited, sets_of
from tests.dedup.test_real_text import load
from tests.dedup.test_real_text import sets_of as real_sets

NEAR: dict[str, Any] = {**SURE, "threshold": 0.6}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in (ExactDuplicates, MinHashDuplicates):
        monkeypatch.setitem(stage_table.STAGES, stage.name, stage)


def make_corpus(folder: Path, rows: list[dict[str, Any]], stages: list[dict[str, Any]]) -> Path:
    """A finished corpus of some documents, in several shards."""
    (folder / "in").mkdir(parents=True)
    for part in range(3):
        lines = [orjson.dumps({"id": row["id"], "text": row["text"]}) for row in rows[part::3]]
        (folder / "in" / f"{part}.jsonl").write_bytes(b"\n".join(lines))
    source = {"name": "s", "kind": "jsonl", "path": str(folder / "in"), "language": "en"}
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"corpus": {
        "sources": [source], "stages": stages, "shard_size": 1, "rejected_text": "full"}}))
    with LocalEngine(1) as engine:
        run_corpus(load_corpus_recipe(str(recipe)), str(folder / "corpus"), engine, Progress(quiet=True))
    return folder / "corpus"


def remember(stages: list[Any], corpus: Path) -> str:
    with LocalEngine(1) as engine:
        write_reference(stages, str(corpus), str(corpus / "reference"), engine)
    return str(corpus / "reference")


def old_and_new(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows = edited(random.Random(seed), 90, 12, words=40)
    for number, row in enumerate(rows):
        row["id"] = f"{'old' if number % 2 else 'new'}{number:03d}"
    return rows[1::2], rows[::2]


def known_pairs(old: list[dict[str, Any]], new: list[dict[str, Any]], stage: MinHashDuplicates) -> dict[str, set[str]]:
    theirs, ours = sets_of(old, stage), sets_of(new, stage)
    return {name: {other for other, b in theirs.items() if len(a & b) >= stage.threshold * len(a | b)}
            for name, a in ours.items()}


@pytest.mark.parametrize("doubt", [0.0, 1e-6])
def test_what_resembles_the_old_corpus_is_dropped(tmp_path: Path, doubt: float) -> None:
    old, new = old_and_new(3)
    plain = MinHashDuplicates(**{**NEAR, "doubt": doubt, "comparisons": 64})
    corpus = make_corpus(tmp_path, old, [])
    place = remember([plain], corpus)
    stage = MinHashDuplicates(**{**NEAR, "doubt": doubt, "comparisons": 64}, against=(place,))
    outcome = driver.run(stage, new, 3, 2, 1, batch_rows=10)
    pairs = known_pairs(old, new, plain)
    known = {row["id"]: row["cause"] for row in outcome.rows if row["verdict"] == "known_near_duplicates"}
    assert set(known) == {name for name, others in pairs.items() if others}
    assert 0 < len(known) < len(new)
    assert all(cause in pairs[name] for name, cause in known.items())
    # The rest is deduplicated as if the known documents had never been there.
    rest = [row for row in new if row["id"] not in known]
    others = {name: cause for name, cause in outcome.dropped().items() if name not in known}
    assert others == driver.run(plain, rest).dropped()
    for layout in ((1, 1, None), (5, 3, 9)):
        assert driver.run(stage, new, *layout, batch_rows=7).rows == outcome.rows
    published = stage.rounds()[1].published(outcome.findings[1]).to_pylist()
    published += stage.rounds()[2].published(outcome.findings[2]).to_pylist()
    assert {row["id"] for row in published} == set(known)
    assert all(row["other"] in pairs[row["id"]] for row in published if row["exact"])


def test_where_the_old_text_is_gone_the_estimate_decides(tmp_path: Path) -> None:
    old, new = old_and_new(5)
    plain = MinHashDuplicates(**NEAR)
    corpus = make_corpus(tmp_path, old, [])
    place = remember([plain], corpus)
    for path in (corpus / "documents").glob("*.parquet"):
        path.unlink()
    stage = MinHashDuplicates(**NEAR, against=(place,))
    outcome = driver.run(stage, new, 2, 2, 1)
    sets, theirs = sets_of(new, plain), sets_of(old, plain)
    for row in outcome.rows:
        best = max(len(sets[row["id"]] & b) / len(sets[row["id"]] | b) for b in theirs.values())
        if abs(best - plain.threshold) > 0.25:
            assert (row["verdict"] == "known_near_duplicates") == (best > plain.threshold)
    assert not any(row["exact"] for row in stage.rounds()[2].published(outcome.findings[2]).to_pylist())
    assert stage.rounds()[2].parameters() != MinHashDuplicates(**NEAR, against=(place,)).rounds()[1].parameters()


def test_exact_texts_of_the_old_corpus(tmp_path: Path) -> None:
    old = [document("b", "if (x) { y; }"), document("a", "if(x){y;}"), document("c", "other")]
    plain = ExactDuplicates(ignore="white_space")
    place = remember([plain], make_corpus(tmp_path, old, []))
    new = [document("n1", "if (x)\n{ y; }"), document("n2", "mine"), document("n3", "mi ne"),
           document("n4", "other", verdict="word_count")]
    stage = ExactDuplicates(ignore="white_space", against=(place,))
    for layout in ((1, 1, None), (4, 3, 2)):
        rows = driver.run(stage, new, *layout).rows
        assert [(row["verdict"], row["cause"]) for row in rows] == [
            ("known_exact_duplicates", "a"), (None, None), ("exact_duplicates", "n2"), ("word_count", None)]


def test_only_kept_documents_are_remembered_and_whole_runs_use_them(tmp_path: Path) -> None:
    old, new = old_and_new(7)
    near = {"stage": "near_duplicates", "ngram": 2, "threshold": 0.6}
    stages: list[dict[str, Any]] = [{"stage": "exact_duplicates"}, near]
    corpus = make_corpus(tmp_path / "old", old, stages)
    kept = {name for path in (corpus / "documents").glob("*.parquet")
            for name in pq.read_table(path).column("id").to_pylist()}
    assert 0 < len(kept) < len(old)
    place = remember([ExactDuplicates(), MinHashDuplicates(ngram=2, threshold=0.6)], corpus)
    second = make_corpus(tmp_path / "new", new, [{**stage, "against": [place]} for stage in stages])
    rejected = [row for path in (second / "rejected").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    known = [row for row in rejected if row["verdict"].startswith("known_")]
    assert {row["verdict"] for row in known} == {"known_exact_duplicates", "known_near_duplicates"}
    assert {row["cause"] for row in known} <= kept
    signed = pq.read_table(sorted((corpus / "reference" / "near_duplicates").glob("*.signatures.parquet")))
    assert set(signed.column("id").to_pylist()) == kept


def test_a_reference_that_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, old_and_new(1)[0], [])
    place = remember([MinHashDuplicates(ngram=5)], corpus)
    with pytest.raises(ValueError, match="ngram is 5 there and 13 here"):
        MinHashDuplicates(against=(place,))
    for change in ({"seed": 2}, {"hashes": 256}, {"lower_case": True}, {"bands": 20}, {"unit": "characters"}):
        with pytest.raises(ValueError, match=f"{next(iter(change))} is "):
            MinHashDuplicates(ngram=5, against=(place,), **change)  # type: ignore[arg-type]
    MinHashDuplicates(ngram=5, threshold=0.5, against=(place,))  # another threshold is no hindrance
    with pytest.raises(ValueError, match="there is no reference for 'exact_duplicates'"):
        ExactDuplicates(against=(place,))
    stages = [{"stage": "near_duplicates", "against": [str(tmp_path / "nowhere")]}]
    with pytest.raises(RecipeError, match="there is no reference for 'near_duplicates'"):
        make_corpus(tmp_path / "next", [], stages)
    (corpus / "reference" / "near_duplicates" / "reference.json").write_text("[1]")
    with pytest.raises(StaleDataError, match="no reference of a corpus"):
        read_reference(place, "near_duplicates", {})


def test_a_changed_reference_changes_what_a_run_depends_on(tmp_path: Path) -> None:
    old, _ = old_and_new(9)
    plain = ExactDuplicates()
    corpus = make_corpus(tmp_path / "a", old, [])
    place = remember([plain], corpus)
    before = ExactDuplicates(against=(place,)).rounds()[0].parameters()
    assert ExactDuplicates(against=(remember([plain], corpus),)).rounds()[0].parameters() == before
    other = make_corpus(tmp_path / "b", old[:-3], [])
    with LocalEngine(1) as engine:
        write_reference([plain], str(other), place, engine)
    assert ExactDuplicates(against=(place,)).rounds()[0].parameters() != before


def test_several_references_and_what_is_left_of_a_damaged_one(tmp_path: Path) -> None:
    old, new = old_and_new(11)
    plain, exact = MinHashDuplicates(**NEAR), ExactDuplicates()
    halves = [make_corpus(tmp_path / str(number), old[number::2], []) for number in range(2)]
    places = tuple(remember([plain, exact], corpus) for corpus in halves)
    whole = remember([plain, exact], make_corpus(tmp_path / "whole", old, []))
    for make in (lambda against: MinHashDuplicates(**NEAR, against=against),
                 lambda against: ExactDuplicates(against=against)):
        apart, together = (driver.run(make(against), new, 2, 2, 1) for against in (places, (whole,)))
        assert set(apart.dropped()) == set(together.dropped())
        assert {row["cause"] for row in apart.rows if (row["verdict"] or "").startswith("known_")} <= {
            row["id"] for row in old}
    # A table cut short is found out before anything is computed.
    table = sorted(Path(whole, "near_duplicates").glob("*.bands.parquet"))[0]
    table.write_bytes(table.read_bytes()[:-7])
    with pytest.raises(ValueError, match="bytes instead of"):
        MinHashDuplicates(**NEAR, against=(whole,))
    table.unlink()
    with pytest.raises(ValueError, match="is missing"):
        MinHashDuplicates(**NEAR, against=(whole,))
    with pytest.raises(StaleDataError, match="cannot be read"):
        list(rows_with_keys(str(table), np.zeros(1, np.uint64)))


def test_an_empty_reference_is_an_error(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [document("a", "one two three")], [])
    pq.write_table(pq.read_table(corpus / "documents" / "s-00000.parquet").slice(0, 0),
                   corpus / "documents" / "s-00000.parquet")
    with pytest.raises(EmptyOutputError, match="no document to remember"):
        remember([ExactDuplicates()], corpus)
    with pytest.raises(StaleDataError, match="no finished result here"):
        remember([ExactDuplicates()], tmp_path / "nowhere")


@pytest.mark.shared
def test_edits_of_real_texts_are_known(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = load(shared / "data" / "dedup" / "synthetic_edits.jsonl.zst")
    firsts = {row["cluster"]: row["id"] for row in reversed(rows)}
    old = [row for row in rows if firsts[row["cluster"]] == row["id"]]
    new = [row for row in rows if firsts[row["cluster"]] != row["id"]]
    plain = MinHashDuplicates(ngram=5, threshold=0.8)
    place = remember([plain], make_corpus(tmp_path, old, []))
    stage = MinHashDuplicates(ngram=5, threshold=0.8, against=(place,))
    outcome = driver.run(stage, [document(row["id"], row["text"]) for row in new], 2, 2)
    sets = real_sets(rows, plain)
    similarity = {row["id"]: jaccard(sets[row["id"]], sets[firsts[row["cluster"]]]) for row in new
                  if len(sets[row["id"]]) and len(sets[firsts[row["cluster"]]])}
    known = {row["id"]: row["cause"] for row in outcome.rows if row["verdict"] == "known_near_duplicates"}
    wanted = {name for name, value in similarity.items() if value >= plain.threshold}
    with capsys.disabled():
        print(f"\nagainst an old corpus: {len(wanted)} similar documents, {len(wanted & set(known))} found, "
              f"{len(set(known) - wanted)} others")
    assert len(wanted & set(known)) >= 0.99 * len(wanted) > 100
    assert all(jaccard(sets[name], sets[cause]) >= plain.threshold - 0.05 for name, cause in known.items())
