"""Web pages: the sample pages against their gold text, charsets, what a page says of itself, pages that hang."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import regex

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources import Html, Quarantined, discover, read_files
from roots_pipeline.sources import pages as pages_module
from roots_pipeline.sources.extraction import declared_charset, language_code
from tests.sources.helpers import run

ROOT = "package://sample/html"
SENTENCES = " ".join(f"This is sentence number {n} of a page about canals; it says something new." for n in range(12))


def tokens(text: str) -> Counter[str]:
    """Words; each Han character is one."""
    return Counter(regex.findall(r"\p{Han}|[\p{L}\p{M}\p{N}]+", text))


def f1(found: str, gold: str) -> float:
    a, b = tokens(found), tokens(gold)
    return 2 * (a & b).total() / max(1, a.total() + b.total())


@pytest.fixture(scope="module")
def gold(request: pytest.FixtureRequest) -> dict[str, dict[str, str]]:
    sample: Path = request.getfixturevalue("sample")
    lines = (sample / "html" / "gold.jsonl").read_text("utf-8").split("\n")
    return {record["file"]: record for record in map(json.loads, filter(None, lines))}


@pytest.fixture(scope="module")
def pages() -> dict[str, dict[str, Any]]:
    reader = Html(source="pages", root=ROOT, language_from="page", license="CC0-1.0")
    batches = list(read_files(reader, discover(ROOT, reader.suffixes)))
    assert len(batches) == 1 and not isinstance(batches[0], Quarantined)
    return {document["id"]: document for document in batches[0].to_pylist()}


def test_main_text(pages: dict[str, dict[str, Any]], gold: dict[str, dict[str, str]]) -> None:
    assert set(pages) == set(gold)
    scores = {name: f1(pages[name]["text"], gold[name]["text"]) for name in gold}
    assert sum(scores.values()) / len(scores) >= 0.95, scores
    assert scores["en-03.html"] > 0.97 and scores["es-01.html"] > 0.97  # broken markup; a wrong declaration
    for name, page in pages.items():
        assert page["source"] == "pages" and page["license"] == "CC0-1.0" and "\ufffd" not in page["text"]
        assert set(tokens(gold[name]["text"])) - set(tokens(page["text"])) == set(), name


def test_what_the_pages_say_of_themselves(pages: dict[str, dict[str, Any]], gold: dict[str, dict[str, str]]) -> None:
    for name in ("en-01.html", "en-02.html"):
        assert pages[name]["url"] == gold[name]["url"]
    assert all(page["language"] == gold[name]["lang"] for name, page in pages.items() if page["language"])
    facts = {name: json.loads(page["metadata"]) for name, page in pages.items()}
    assert facts["fr-01.html"]["charset"] == "cp1252" and facts["es-01.html"]["charset"] == "utf-8"
    assert facts["fr-01.html"]["title"].startswith("L’oreille et la main")
    assert {fact["extractor"] for fact in facts.values()} == {"trafilatura"}


@pytest.mark.parametrize(("extractor", "least"), [("trafilatura", 0.95), ("resiliparse", 0.85), ("roots", 0.85)])
def test_every_extractor_on_the_gold_pages(gold: dict[str, dict[str, str]], extractor: str, least: float) -> None:
    reader = Html(source="pages", root=ROOT, extractor=extractor)  # type: ignore[arg-type]
    (batch,) = read_files(reader, discover(ROOT, reader.suffixes))
    documents = batch.to_pylist()  # type: ignore[union-attr]
    scores = [f1(document["text"], gold[document["id"]]["text"]) for document in documents]
    assert len(scores) == 16 and sum(scores) / len(scores) >= least, scores
    assert {json.loads(document["metadata"])["extractor"] for document in documents} == {extractor}


@pytest.mark.parametrize("reader", [
    Html(source="s", extractor="resiliparse"), Html(source="s", fast=False), Html(source="s", tables=True),
])
def test_other_ways_to_extract(sample: Path, gold: dict[str, dict[str, str]], reader: Html) -> None:
    for name in ("en-04.html", "zh-02.html"):
        (document,), bad = run(reader, sample / "html" / name)
        assert not bad and f1(document["text"], gold[name]["text"]) > 0.75
        assert ("\n|" in document["text"]) == (reader.tables and name == "en-04.html")


def one(tmp_path: Path, page: bytes | str, **settings: Any) -> dict[str, Any]:
    (tmp_path / "p.html").write_bytes(page if isinstance(page, bytes) else page.encode())
    (document,), bad = run(Html(source="s", **settings), tmp_path / "p.html")
    assert not bad
    return document


def test_page_facts(tmp_path: Path) -> None:
    head = '<html lang="pt-BR"><head><title> A \n title </title>'
    body = f"</head><body><p>{SENTENCES}</p></body></html>"
    link = '<link rel="Canonical other" href=" https://h.example/a?b=1 ">'
    document = one(tmp_path, head + link + body, language_from="page")
    assert document["url"] == "https://h.example/a?b=1" and document["language"] == "pt"
    assert json.loads(document["metadata"])["title"] == "A title" and document["text"].strip() == SENTENCES
    link = '<link rel=canonical href="/a"><meta property="og:url" content="http://h.example/o">'
    document = one(tmp_path, head + link + body)
    assert document["url"] == "http://h.example/o" and document["language"] is None
    for href in ("/relative", "javascript:x", "http://", "http://[", ""):
        assert one(tmp_path, f'{head}<link rel=canonical href="{href}">{body}')["url"] is None


@pytest.mark.parametrize("page", [
    "", "   ", "<html>", "<!-- only a comment -->", "plain words", "\0\0\0", "<?xml version='1.0' encoding='utf-8'?>",
    "<p>&#xD800;",
])
def test_pages_without_main_text_are_documents(tmp_path: Path, page: str) -> None:
    document = one(tmp_path, page)
    assert len(document["text"]) < 20 and document["id"] == "p.html"


def test_xml_declarations_and_character_references(tmp_path: Path) -> None:
    page = f'<?xml version="1.0" encoding="iso-8859-1"?><html><body><p>Caf\xe9 &euro;&#8364;. {SENTENCES}</p>'
    assert one(tmp_path, page.encode("latin-1"))["text"].startswith("Café €€. ")


def test_what_no_charset_fits(tmp_path: Path) -> None:
    (tmp_path / "p.html").write_bytes(bytes(range(256)) * 40)
    documents, bad = run(Html(source="s"), tmp_path / "p.html")
    assert documents == [] and bad[0].reason == "no charset fits its bytes"


def test_pages_that_are_too_large(tmp_path: Path) -> None:
    (tmp_path / "p.html").write_text("<p>" + "x" * 1000)
    documents, bad = run(Html(source="s", max_page_bytes=1000), tmp_path / "p.html")
    assert documents == [] and "larger than 1,000 bytes" in bad[0].reason


def test_a_page_that_hangs_is_quarantined_and_the_next_one_is_read(tmp_path: Path) -> None:
    nested = "<div>" * 200_000 + f"<p>{SENTENCES}</p>" + "</div>" * 200_000
    (tmp_path / "p.html").write_text(f"<html><body>{nested}</body></html>")
    documents, bad = run(Html(source="s", seconds=0.5, extractor="resiliparse"), tmp_path / "p.html")
    assert documents == [] and "took more than 0.5 s of CPU time" in bad[0].reason
    assert one(tmp_path, f"<p>{SENTENCES}</p>")["text"].strip() == SENTENCES


def test_deep_nesting_falls_back(tmp_path: Path) -> None:
    page = "<html><body>" + "<div>" * 1500 + f"<p>{SENTENCES}</p>" + "</div>" * 1500 + "</body></html>"
    document = one(tmp_path, page)
    assert "sentence number 11" in document["text"]
    assert json.loads(document["metadata"])["extractor"] == "resiliparse"
    assert one(tmp_path, page, fallback=False)["text"] == ""


def test_a_page_that_takes_too_long_falls_back(tmp_path: Path) -> None:
    links = "".join(f'<p><a href="/{n}">link {n}</a></p>' for n in range(60_000))
    (tmp_path / "p.html").write_text(f"<html><body><article><p>{SENTENCES}</p></article>{links}</body></html>")
    (document,), bad = run(Html(source="s", seconds=0.8), tmp_path / "p.html")
    assert not bad and json.loads(document["metadata"])["extractor"] == "resiliparse"
    assert "sentence number 11" in document["text"]


@pytest.mark.parametrize(("first", "asked"), [
    ({"error": "needs more than 512 MiB of memory"}, 2), ({"error": "ValueError: odd"}, 2),
    ({"error": "no charset fits its bytes"}, 1), ({"text": ""}, 1), ({"text": "t"}, 1),
])
@pytest.mark.parametrize("second", ["text", ""])
def test_when_the_fallback_is_asked(
    monkeypatch: pytest.MonkeyPatch, first: dict[str, str], asked: int, second: str
) -> None:
    options: list[dict[str, Any]] = []

    def call(data: bytes, given: dict[str, Any], **limits: float) -> dict[str, str]:
        options.append(given)
        return first if len(options) == 1 else {"text": second}

    monkeypatch.setattr(pages_module._EXTRACTION, "call", call)
    found = Html(source="s").extract(b"<p>")
    assert [given["extractor"] for given in options] == ["trafilatura", "resiliparse"][:asked]
    assert found == ({"text": "text"} if asked == 2 and second else first)


@pytest.mark.parametrize("extractor", ["trafilatura", "resiliparse", "roots"])
def test_five_thousand_levels(tmp_path: Path, extractor: str) -> None:
    nested = f"<p>{SENTENCES}</p>" + "<div>" * 5000 + f"<p>{SENTENCES}</p>" + "</div>" * 5000
    document = one(tmp_path, f"<html><body>{nested}</body></html>", extractor=extractor)
    assert "sentence number 11" in document["text"]


def test_fifty_megabytes(tmp_path: Path) -> None:
    with (tmp_path / "p.html").open("wb") as handle:
        for _ in range(50):
            handle.write(b"<p>" + b"words " * 174_762)
    documents, bad = run(Html(source="s"), tmp_path / "p.html")
    assert documents == [] and "larger than 10,485,760 bytes" in bad[0].reason


def test_settings() -> None:
    with pytest.raises(RecipeError, match="contradict"):
        Html(source="s", language="en", language_from="page")
    with pytest.raises(RecipeError, match="`seconds` is 0"):
        Html(source="s", seconds=0)


@pytest.mark.parametrize(("head", "label"), [
    (b'<meta charset="Shift_JIS">', "Shift_JIS"), (b"<META CHARSET = 'x'>", "x"), (b"<meta charset=utf-8>", "utf-8"),
    (b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"/>', "windows-1251"),
    (b"<meta content='text/html;charset=koi8-r' http-equiv=content-type>", "koi8-r"),
    (b'<?xml version="1.0" encoding="EUC-KR"?>', "EUC-KR"),
    (b"<!-- <meta charset=wrong> --><meta charset=right>", "right"), (b"<p>charset=none", None), (b"", None),
    (b" " * 5000 + b"<meta charset=late>", None),
])
def test_declared_charsets(head: bytes, label: str | None) -> None:
    assert declared_charset(head) == label


@pytest.mark.parametrize(("tag", "code"), [
    ("en", "en"), ("EN-gb", "en"), ("zh-Hant", "zht"), ("zh_TW", "zht"), ("zh-CN", "zh"), ("zh", "zh"), ("yor", "yor"),
    ("", None), (None, None), ("english", None), ("x-klingon", None), ("ар", None),
])
def test_language_tags(tag: str | None, code: str | None) -> None:
    assert language_code(tag) == code
