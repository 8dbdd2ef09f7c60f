"""Documents of the same page: which URLs are equal, and who stays."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.dedup.ranks import sources_named
from roots_pipeline.dedup.urls import UrlDuplicates, url_key
from tests.dedup.driver import document, run

SAME_PAGE = [
    "https://www.Example.org/a/b?x=1", "http://example.org:80/a/b/?x=1#top", "//EXAMPLE.org/a/b?utm_source=mail&x=1",
    "https://example.org:443/a/b?x=1&fbclid=AbC&",
]
OTHER_PAGES = ["https://example.org/a/B?x=1", "https://example.org/a/b", "https://example.org/a/b?x=2",
               "https://m.example.org/a/b?x=1", "https://example.org:8080/a/b?x=1"]


def test_spellings_of_one_page() -> None:
    assert len({url_key(url, "page") for url in SAME_PAGE}) == 1
    assert len({url_key(url, "page") for url in [SAME_PAGE[0], *OTHER_PAGES]}) == 6
    assert len({url_key(url, "page") for url in ("#a", "#b", "https://", "http://")}) == 4  # nothing would be left


@pytest.mark.parametrize("kind", ["page", "whole", "without_query", "without_amp", "page_id"])
def test_what_is_no_address_counts_whole(kind: str) -> None:
    assert [url_key(url, kind) for url in (None, "", "  ")] == [None] * 3  # type: ignore[arg-type]
    for url in ("http://[", "http://a:99999999/"):
        assert url_key(url, kind) == url.rstrip("/") or url_key(url, kind) == url  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from([None, " ", "http://a/?1", "http://a/?2", "http://a/", "b"]),
               st.sampled_from("xyz"), st.integers(0, 3)), max_size=16), st.integers(1, 4), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_best_rank_stays(pages: list[tuple[str | None, str, int]], shards: int, seed: int) -> None:
    names = [f"d{number:02d}" for number in range(len(pages))]
    random.Random(seed).shuffle(names)
    rows = [document(name, "é" * size, source, url=url)
            for name, (url, source, size) in zip(names, pages, strict=True)]
    stage = UrlDuplicates(key="without_query", prefer=("y",), measure="length")
    outcome = run(stage, rows, shards, 2, seed, batch_rows=4)
    groups: dict[str, list[tuple[bool, int, str]]] = {}
    for row in rows:
        if (key := (row["url"] or "").strip().split("?")[0]):
            groups.setdefault(key, []).append((row["source"] != "y", -len(row["text"]), row["id"]))
    wanted = {rank[2]: min(group)[2] for group in groups.values() for rank in group if rank != min(group)}
    assert outcome.dropped() == wanted
    assert outcome.kept() | set(wanted) == set(names)


def test_a_measure_decides_and_must_be_there() -> None:
    stage = UrlDuplicates(measure="-perplexity")
    batch = stage.prepare()(make_batch([document(name, "t", url="u") for name in "abc"]))
    with pytest.raises(RecipeError, match="no stage before measures it"):
        stage.emit(batch, 0, 0)
    import pyarrow as pa
    batch = batch.append_column("perplexity", pa.array([None, 3.0, 2.0]))
    sent = stage.emit(batch, 0, 7)
    assert sent.column("row").to_pylist() == [9]  # the best of the batch alone
    judged = stage.apply(batch, stage.resolve(sent), 7)
    assert judged.column("cause").to_pylist() == ["c", "c", None]


def test_sources_a_stage_names() -> None:
    assert sources_named(UrlDuplicates(prefer=("wiki", "web"))) == ("wiki", "web")
