"""Content filters: block lists of URLs, and classifiers of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules import classifier
from roots_pipeline.rules.classifier import Classify
from roots_pipeline.rules.url_blocklist import UrlBlocklist


def judged(tmp_path: Path, entries: str, urls: list[str | None]) -> list[str | None]:
    path = tmp_path / "list.txt"
    path.write_text(entries)
    batch = make_batch([{"id": str(number), "text": "t", "source": "s", "url": url} for number, url in enumerate(urls)])
    after = UrlBlocklist((str(path),))(batch)
    causes: list[str | None] = after.column("cause").to_pylist()
    assert after.column("verdict").to_pylist() == [None if cause is None else "blocked_url" for cause in causes]
    return causes


@pytest.mark.parametrize(("url", "cause"), [
    ("https://bad.example/", "bad.example"),
    ("http://WWW.Bad.Example:8080/x?y", "bad.example"),
    ("https://user:pw@deep.sub.bad.example/x", "bad.example"),
    ("bad.example/page", "bad.example"),
    ("//bad.example", "bad.example"),
    ("https://bad.example?x=/y", "bad.example"),
    ("https://bad.example.", "bad.example"),
    ("https://notbad.example/", None),
    ("https://example/", None),
    ("https://good.example/bad.example", None),
    ("https://part.example/blocked/page", "part.example/blocked"),
    ("https://www.part.example/blocked", "part.example/blocked"),
    ("https://part.example/free", None),
    ("https://other.part.example/blocked", None),
    (None, None),
    ("", None),
])
def test_domains_block_subdomains_and_paths_block_what_begins_with_them(
    tmp_path: Path, url: str | None, cause: str | None
) -> None:
    entries = "# a comment\nbad.example\n\nhttps://www.part.example/blocked  # with scheme\n"
    assert judged(tmp_path, entries, [url]) == [cause]


def test_documents_that_have_a_verdict_keep_it(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("bad.example")
    row = {"id": "1", "text": "t", "source": "s", "url": "http://bad.example", "verdict": "word_count"}
    after = UrlBlocklist((str(tmp_path / "l"),))(make_batch([row]))
    assert after.column("verdict").to_pylist() == ["word_count"]


def test_a_changed_list_is_another_stage(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("a.example")
    before = UrlBlocklist((str(tmp_path / "l"),)).parameters()
    (tmp_path / "l").write_text("b.example")
    assert UrlBlocklist((str(tmp_path / "l"),)).parameters() != before


def test_missing_lists_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no list"):
        UrlBlocklist()
    with pytest.raises(RecipeError, match="cannot be read"):
        UrlBlocklist((str(tmp_path / "nowhere"),))


def lengths(batch: pa.RecordBatch) -> list[float | None]:
    return [len(text) / 10 or None for text in batch.column("text").to_pylist()]


def wrong(batch: pa.RecordBatch) -> list[Any]:
    return ["x"] * batch.num_rows


def few(batch: pa.RecordBatch) -> list[float]:
    return []


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [EntryPoint(name, f"{__name__}:{name}", classifier.GROUP) for name in ("lengths", "wrong", "few")]
    monkeypatch.setattr(classifier, "entry_points", lambda group: entries if group == classifier.GROUP else [])
    classifier._load.cache_clear()


@pytest.mark.usefixtures("offered")
def test_a_classifier_of_another_package_is_a_measure() -> None:
    batch = make_batch([{"id": "1", "text": "abc", "source": "s"}, {"id": "2", "text": "", "source": "s"}])
    assert Classify("lengths")(batch).column("classifier_lengths").to_pylist() == [0.3, None]
    assert Classify("lengths")(batch.slice(0, 0)).schema.field("classifier_lengths").type == pa.float64()
    with pytest.raises(RecipeError, match="returned 0 scores for 2"):
        Classify("few")(batch)
    with pytest.raises(RecipeError, match="no number"):
        Classify("wrong")(batch)


@pytest.mark.usefixtures("offered")
def test_unknown_classifiers_are_sentences() -> None:
    with pytest.raises(RecipeError, match=r"no classifier 'length'.*'lengths'"):
        Classify("length")


def test_no_classifier_at_all() -> None:
    with pytest.raises(RecipeError, match="No installed package offers any"):
        Classify("x")
