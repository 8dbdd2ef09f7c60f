"""Duplicates, cuts, contamination and composition of a real run, against its files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from roots_pipeline.core.manifest import Manifest
from roots_pipeline.decontamination.review import write_review
from roots_pipeline.report import write_report
from roots_pipeline.report.collect import collect
from roots_pipeline.report.composition import published
from roots_pipeline.report.facts import Corpus
from roots_pipeline.report.history import Cost, read_cost
from tests.report.strict_html import Page
from tests.report.synthetic import make_rows, write_corpus, write_model
from tests.report.test_sample_run import finished

__all__ = ["finished"]


@pytest.fixture(scope="module")
def corpus(finished: tuple[Path, Manifest]) -> Corpus:
    write_review(str(finished[0] / "corpus"))
    found = collect(str(finished[0])).corpus
    assert found is not None
    return found


@pytest.fixture(scope="module")
def rows(finished: tuple[Path, Manifest]) -> dict[str, dict[str, Any]]:
    paths = [path for part in ("documents", "rejected") for path in (finished[0] / "corpus" / part).glob("*.parquet")]
    return {row["id"]: row for path in paths for row in pq.read_table(path).to_pylist()}


def test_clusters_are_those_of_the_files(corpus: Corpus, rows: dict[str, dict[str, Any]]) -> None:
    assert {gallery.verdict for gallery in corpus.duplicates} == {"exact_duplicates", "near_duplicates"}
    for gallery in corpus.duplicates:
        mine = [row for row in rows.values() if row.get("verdict") == gallery.verdict]
        assert gallery.documents == len(mine)
        for cluster in gallery.clusters:
            own = {row["id"] for row in mine if row["cause"] == cluster.cause.id}
            assert cluster.size == len(own) and {twin.id for twin in cluster.dropped} <= own
            for twin in (cluster.cause, *cluster.dropped):
                assert twin.pieces is not None
                shown = "".join(piece.text for piece in twin.pieces if piece.kind != "left out")
                assert rows[twin.id]["text"].startswith(shown) and len(shown) > 100
            compared = [(twin.similarity or "").startswith("Jaccard 0.") for twin in cluster.dropped]
            assert all(compared) == (gallery.verdict == "near_duplicates")


def test_cuts_are_shown_in_place_with_a_document_that_holds_them(
    corpus: Corpus, rows: dict[str, dict[str, Any]]
) -> None:
    cuts = corpus.cuts
    assert cuts is not None
    mine = [row for row in rows.values() if row.get("verdict") is None and row["cut_bytes"]]
    assert (cuts.documents, cuts.size) == (len(mine), sum(row["cut_bytes"] for row in mine)) and cuts.examples
    for cut in cuts.examples:
        assert cut.pieces is not None and cut.elsewhere is not None, cut
        gone = [piece.text for piece in cut.pieces if piece.kind == "cut"]
        assert gone and all(text not in rows[cut.id]["text"] for text in gone if len(text) > 50)
        assert gone[0].strip()[:200] in rows[cut.elsewhere]["text"]
        kept = [piece.text for piece in cut.pieces if piece.kind == "same"]
        assert all(text in rows[cut.id]["text"] for text in kept)


def test_sources_that_are_gone_or_changed_are_not_shown(tmp_path: Path, finished: tuple[Path, Manifest]) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    path = run / "corpus" / "manifest.json"
    manifest = orjson.loads(path.read_bytes())
    shards = list(manifest["inputs"])
    for shard in shards:
        manifest["inputs"][shard] = [["/nowhere/x.jsonl", "0"], *([name, "0" * 32] for name, _ in
                                                                 manifest["inputs"][shard])]
    path.write_bytes(orjson.dumps(manifest))
    found = collect(str(run)).corpus
    assert found is not None and found.cuts is not None
    assert {cut.reason for cut in found.cuts.examples} == {"Its source is not at hand, or has changed."}
    assert "cannot be shown" in Path(write_report(str(run))).read_text("utf-8")


def test_the_review_is_shown_if_it_is_of_this_corpus(
    corpus: Corpus, finished: tuple[Path, Manifest], tmp_path: Path
) -> None:
    folder = finished[0] / "corpus"
    counted = {row["name"]: row for row in orjson.loads((folder / "contamination.json").read_bytes())}
    found = corpus.contamination
    assert found is not None and found.reviewed
    assert {own.name: (own.items, own.found, own.documents) for own in found.sets} == {
        name: (row["items"], row["items_found"], row["documents"]) for name, row in counted.items()}
    hits = {(row["evaluation"], row["document"], row["item"]): row
            for row in pq.read_table(folder / "contamination.parquet").to_pylist()}
    for match in found.matches:
        row = hits[match.evaluation, match.document, match.item]
        assert "".join(piece.text for piece in match.item_passage if piece.kind != "left out") in row["item_passage"]
    shutil.copytree(finished[0], tmp_path / "run")
    table = pq.read_table(folder / "contamination.parquet").replace_schema_metadata({"corpus": "another"})
    pq.write_table(table, tmp_path / "run" / "corpus" / "contamination.parquet")
    html = Path(write_report(str(tmp_path / "run"))).read_text("utf-8")
    assert f"python -m roots_pipeline review --run {tmp_path / 'run'}" in html


def test_composition_beside_published_shares(corpus: Corpus, rows: dict[str, dict[str, Any]]) -> None:
    kept = [row for row in rows.values() if row.get("verdict") is None]
    sizes = {row.name: row.size for row in corpus.composition.languages if row.size}
    for language in ("en", "hi"):
        assert sizes[language] == sum(len(row["text"].encode()) for row in kept if row["language"] == language)
    assert sizes["code"] == sum(len(row["text"].encode()) for row in kept if row["source"] == "code")
    for table in (corpus.composition.languages, corpus.composition.scripts, corpus.composition.kinds):
        assert abs(sum(row.share for row in table) - 1) < 1e-9
        assert sum(row.published or 0 for row in table) == pytest.approx(1)
    shares = {row.name: row.published for row in corpus.composition.languages}
    assert shares["en"] == pytest.approx(0.3003774, abs=1e-7) and shares["rn"] == pytest.approx(2.0e-6, abs=1e-7)


def test_every_published_language_has_one_script() -> None:
    facts = published()
    named = [language for names in facts["scripts"].values() for language in names]
    assert len(named) == len(set(named)) and set(facts["roots"]) - {"code"} <= set(named)
    assert sum(facts["roots"].values()) == 1_614_479_114_961
    assert all(isinstance(name, str) for name in (*named, *facts["roots"], *facts["names"], *facts["names"].values()))


def test_documents_name_the_command_that_tells_more(finished: tuple[Path, Manifest], tmp_path: Path) -> None:
    html = Path(write_report(str(finished[0]))).read_text("utf-8")
    assert f"explain en-p1 --run {finished[0]}" in html
    write_corpus(tmp_path, [*make_rows(20), {"id": "a b'\u202e", "source": "web", "verdict": "v", "text": "t"},
                            {"id": "it's", "source": "web", "verdict": "w", "text": "t"}])
    page = Page(Path(write_report(str(tmp_path))).read_text("utf-8"))
    told = [text for text in page.text if " explain " in text]
    assert any("'it'\"'\"'s'" in text for text in told) and not any("202E" in text for text in told)


def test_incidents_and_cost(tmp_path: Path) -> None:
    lines: list[Any] = [{"step": step, "samples": step, "loss": 3.0} for step in range(1, 50)]
    lines += [{"step": step, "samples": step, "incident": f"loss 9 <b> ({step})"} for step in range(1, 40)]
    write_model(tmp_path, lines)
    (tmp_path / "model" / "history.jsonl").write_bytes(b'{"seconds": 1.5}\n{"seconds": 2}\n{"sec')
    page = Page(Path(write_report(str(tmp_path))).read_text("utf-8"))
    table = page.tables["39 steps out of the ordinary, the first 20"]
    assert len(table) == 21 and table[1] == ["1", "loss 9 <b> (1)"]
    assert page.tables["Cost"][1][:3] == ["Model", "2", "3.5 s"]
    assert read_cost(str(tmp_path / "model" / "history.jsonl")) == Cost(2.0, 3.5, 2)
    assert read_cost(str(tmp_path / "nothing")) is None


