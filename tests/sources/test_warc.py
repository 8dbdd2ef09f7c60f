"""Web archives: real files, what HTTP says, damage inside of pages, WET."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.sources import Warc, Wet, discover, read_files
from roots_pipeline.sources.warc_http import http_body, http_head, warc_headers
from tests.sources.helpers import run, texts
from tests.sources.warcs import SENTENCES, http, members, page, pages, record

# File: ids of its pages' addresses, and how many bad records.
REAL = {
    "example.warc.gz": ["http://example.com/"],
    "example-trunc.warc": ["http://example.com/"],
    "example-wrong-chunks.warc.gz": ["http://example.com/"],
    "post-blackout.warc.gz": ["http://wikimediafoundation.org/wiki/SOPA/Blackoutpage"],
    "whirlwind.warc.gz": ["https://an.wikipedia.org/wiki/Escopete"],
}


def one(tmp_path: Path, *records: bytes, **settings: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Documents, and the reasons for bad records."""
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    documents, bad = run(Warc(source="s", root=str(tmp_path), **settings), tmp_path / "x.warc")
    return documents, [record.reason for record in bad]


@pytest.mark.parametrize("name", REAL)
def test_real_archives_are_read_completely(shared: Path, name: str) -> None:
    documents, bad = run(Warc(source="s"), shared / "data" / "warc" / name)
    assert [document["url"] for document in documents] == REAL[name] and not bad
    facts = json.loads(documents[0]["metadata"])
    assert len(documents[0]["text"]) > 150 and facts["date"] and facts["digest"].startswith("sha1:")
    # Two of them were changed after they had been written; their digests tell.
    assert (facts.get("block_digest") == "differs") == (name in ("example-trunc.warc", "example-wrong-chunks.warc.gz"))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("share", [0.4, 0.9])
def test_real_archives_that_are_cut(shared: Path, tmp_path: Path, name: str, share: float) -> None:
    data = (shared / "data" / "warc" / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(share * len(data))])
    documents, bad = run(Warc(source="s"), tmp_path / name)
    assert [document["url"] for document in documents] == REAL[name][: len(documents)]
    assert len(bad) == 1 and "cut off" in bad[0].reason


def test_a_real_wet_file(shared: Path) -> None:
    documents, bad = run(Wet(source="s"), shared / "data" / "warc" / "whirlwind.warc.wet.gz")
    assert not bad and [document["url"] for document in documents] == REAL["whirlwind.warc.gz"]
    assert documents[0]["text"].startswith("Escopete") and documents[0]["id"].startswith("urn:uuid:")
    assert json.loads(documents[0]["metadata"])["identified_languages"] == "spa"


def test_pages_become_documents(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(members(pages(5)))
    (tmp_path / "b.warc.wet.gz").write_bytes(b"")
    reader = Warc(source="crawl", root=str(tmp_path), license="CC0-1.0", language_from="page")
    files = discover(str(tmp_path), reader.suffixes)
    (batch,) = read_files(reader, files)
    documents = batch.to_pylist()  # type: ignore[union-attr]
    assert [document["id"] for document in documents] == [f"urn:p{n}" for n in range(5)]
    first = documents[0]
    assert first["url"] == "https://e.example/p0" and first["language"] == "en" and first["license"] == "CC0-1.0"
    assert first["text"].strip() == f"Page 0. {SENTENCES}" and first["source"] == "crawl"
    assert json.loads(first["metadata"]) == {
        "date": "2026-01-02T03:04:05Z", "title": "Page 0", "charset": "utf-8", "extractor": "trafilatura"}


def test_ids_without_record_ids(tmp_path: Path) -> None:
    block = http(page("A"))
    documents, _ = one(tmp_path, record(block), record(block, WARC_Target_URI="<http://a/>", WARC_Date="2026"))
    assert [document["id"] for document in documents] == ["x.warc:1", "http://a/ 2026"]
    assert documents[1]["url"] == "http://a/"


def test_what_is_a_page(tmp_path: Path) -> None:
    records = [
        record(http(page("no", ""), status="404 Not Found"), name="missing"),
        record(http(b"PNG", kind="image/png"), name="picture"),
        record(http(page("yes"), kind="Text/HTML; charset=utf-8"), name="upper"),
        record(http(page("yes"), kind="application/xhtml+xml"), name="xhtml"),
        record(page("yes"), "resource", "resource", content_type="text/html"),
        record(b"x", "resource", "other", content_type="text/plain"),
        record(http(page("no")), "revisit", "revisit"),
        record(b"GET /", "request", "request"),
        record(b"dns", "response", "dns", content_type="text/dns"),
    ]
    documents, bad = one(tmp_path, *records)
    assert [document["id"] for document in documents] == ["urn:upper", "urn:xhtml", "urn:resource"] and not bad
    documents, _ = one(tmp_path, *records, statuses=(404,), content_types=("text/html",))
    assert [document["id"] for document in documents] == ["urn:missing", "urn:resource"]


def test_the_charset_of_the_http_header_counts_before_the_page(tmp_path: Path) -> None:
    text = "Привет, мир. " * 40
    body = f"<html><head><meta charset=iso-8859-1></head><body><p>{text}</p></body></html>".encode("cp1251")
    documents, bad = one(tmp_path, record(http(body, kind='text/html; charset="windows-1251"')))
    assert not bad and documents[0]["text"].strip() == text.strip()
    documents, _ = one(tmp_path, record(http(page("Nonsense"), kind="text/html; charset=nonsense")))
    assert json.loads(documents[0]["metadata"])["charset"] == "utf-8"


def chunked(data: bytes, size: int, said: int | None = None) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (said or len(part), part) for part in parts) + b"0\r\n\r\n"


BODY = page("Encoded")
RAW = zlib.compressobj(wbits=-15)
DEFLATED = RAW.compress(BODY) + RAW.flush()


@pytest.mark.parametrize(("headers", "body", "told"), [
    (["Content-Encoding: gzip"], gzip.compress(BODY), False),
    (["Content-Encoding: deflate"], zlib.compress(BODY), False),
    (["Content-Encoding: deflate"], DEFLATED, True),
    (["Content-Encoding: gzip"], BODY, True),
    (["Content-Encoding: br"], BODY, True),
    (["Content-Encoding: unheard-of"], BODY, True),
    (["Content-Encoding: identity"], BODY, False),
    (["Transfer-Encoding: chunked"], chunked(BODY, 100), False),
    (["Transfer-Encoding: chunked"], BODY, True),
    (["Transfer-Encoding: chunked"], chunked(BODY, 100, 40), True),
    (["Transfer-Encoding: chunked"], chunked(BODY, 100, 300), True),
    (["Transfer-Encoding: chunked", "Content-Encoding: gzip"], chunked(gzip.compress(BODY), 100), False),
    (["Transfer-Encoding: chunked", "Content-Encoding: gzip"], gzip.compress(BODY), True),
    (["Content-Length: 99999"], BODY, False),
    ([], BODY, False),
])
def test_encodings_and_wrong_ones(tmp_path: Path, headers: list[str], body: bytes, told: bool) -> None:
    documents, bad = one(tmp_path, record(http(body, *headers), name="p"))
    assert not bad and documents[0]["text"].strip() == f"Encoded. {SENTENCES}"
    facts = json.loads(documents[0]["metadata"])
    assert ("damage" in facts) == told and facts.get("missing_bytes", 0) == (
        99999 - len(BODY) if headers == ["Content-Length: 99999"] else 0)


def test_a_page_cut_inside_its_encoding_gives_what_is_there(tmp_path: Path) -> None:
    long = page("Long", " ".join(f"Sentence {n * 7919} says {n * 104729}." for n in range(3000)))
    documents, bad = one(
        tmp_path, record(http(gzip.compress(long)[:-3000], "Content-Encoding: gzip"), WARC_Truncated="length"),
        record(http(chunked(long, 1000)[:-3000], "Transfer-Encoding: chunked")))
    assert not bad and len(documents) == 2
    assert json.loads(documents[0]["metadata"])["truncated"] == "length"
    for text in texts(documents):
        assert text.startswith("Long. Sentence 0 says 0.") and 1000 < len(text) < len(long) - 1000


@pytest.mark.parametrize("block", [b"", b"no http", http(b"\x1f\x8b\x08" + b"x" * 50, "Content-Encoding: gzip")])
def test_what_cannot_be_read_is_quarantined(tmp_path: Path, block: bytes) -> None:
    documents, bad = one(tmp_path, record(block, name="a"), *pages(1))
    assert len(documents) == 1 and len(bad) == 1


def test_wrong_lengths_give_the_page_and_a_bad_record(tmp_path: Path) -> None:
    records = pages(3)
    records[3] = record(http(page("Page 1")), name="p1", length=99)
    documents, bad = one(tmp_path, *records)
    assert [document["id"] for document in documents] == ["urn:p0", "urn:p1", "urn:p2"]
    assert documents[1]["text"].strip() == f"Page 1. {SENTENCES}"
    assert len(bad) == 1 and "Content-Length of 99" in bad[0]


def test_size_caps(tmp_path: Path) -> None:
    bomb = gzip.compress(b"<p>" + b"a" * (30 << 20))
    documents, bad = one(
        tmp_path, record(http(page("Large", "x " * 3000))), record(http(bomb, "Content-Encoding: gzip")), *pages(1),
        record(http(b"p" * 200_000, kind="image/png")), max_page_bytes=5000)
    assert [document["id"] for document in documents] == ["urn:p0"]
    assert bad == ["the page is larger than 5,000 bytes"] * 2


def test_a_page_that_kills_the_parser_costs_only_itself(tmp_path: Path) -> None:
    nested = b"<html><body>" + b"<div>" * 200_000 + b"<p>" + SENTENCES.encode() + b"</p>" + b"</div>" * 200_000
    documents, bad = one(tmp_path, record(http(nested), name="deep"), *pages(1), seconds=0.4, extractor="resiliparse")
    assert [document["id"] for document in documents] == ["urn:p0"] and "CPU time" in bad[0]


def test_wet(tmp_path: Path) -> None:
    def text(data: bytes, name: str, kind: str = "conversion") -> bytes:
        return record(data, kind, name, content_type="text/plain")

    (tmp_path / "a.wet.gz").write_bytes(members([
        text(b"software: x", "i", "warcinfo"), text("Tschüs\r\n".encode(), "a"),
        text("Grüße ".encode("cp1252") * 9, "b"),
        text(bytes(range(256)) * 9, "c"), text(b"x" * 4000, "d"), text(b"", "e"),
    ]))
    reader = Wet(source="s", root=str(tmp_path), language="de", max_document_bytes=3000)
    assert [file.path for file in discover(str(tmp_path), reader.suffixes)] == [str(tmp_path / "a.wet.gz")]
    documents, bad = run(reader, tmp_path / "a.wet.gz", batch_bytes=1)
    assert [(d["id"], d["text"].strip(), d["language"]) for d in documents] == [
        ("urn:a", "Tschüs", "de"), ("urn:b", ("Grüße " * 9).strip(), "de"), ("urn:e", "", "de")]
    assert [(record.record, record.reason) for record in bad] == [
        (4, "no charset fits its bytes"), (5, "the text is longer than 3,000 bytes")]


def test_headers() -> None:
    found = warc_headers(b"WARC/1.0\nwarc-TYPE: response\nWARC-Target-URI: http://a/\xc3\xa9\xff\n b\nodd line\n\n")
    assert found.get("WARC-Type") == "response" and str(found.get("WARC-Target-URI")).startswith("http://a/é")
    head = http_head(b"HTTP/1.0 200\nContent-Type: text/html;charset='UTF-8'\n\n<p>")
    assert head and (head.status, head.content_type, head.charset) == (200, "text/html", "utf-8")
    assert http_head(b"GET / HTTP/1.1\r\n\r\n") is None and http_body(http(b"<p>"), 2) == (b"<p>", None)


def test_settings(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="`max_page_bytes` is 0"):
        Warc(source="s", max_page_bytes=0)
    with pytest.raises(RecipeError, match="max_document_bytes"):
        Wet(source="s", max_document_bytes=0)
    with pytest.raises(SourceError, match=r"no\.warc"):
        list(Warc(source="s").read(str(tmp_path / "no.warc")))
