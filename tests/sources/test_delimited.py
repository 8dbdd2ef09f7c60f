"""CSV and TSV: quoting, columns, rows that are none."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources import Csv, Tsv
from tests.sources.helpers import run, texts
from tests.sources.test_round_trip import store

ROWS = (
    b'\xef\xbb\xbfid,text,url\r\n1,"a ""q"" b\nline2\r\n",http://x\r\n,"",\n2,b\n3,c,d,e\n4,\xff,\n5,"un"x,\n\n6,nul\0,z\n'
    b'7,"open,\nfoo'
)


def test_good_and_bad_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(ROWS))
    documents, bad = run(Csv(source="s"), tmp_path / "x.csv.gz")
    assert [(d["id"], d["text"], d["url"]) for d in documents] == [
        ("1", 'a "q" b\nline2\r\n', "http://x"), ("x.csv.gz:5", "", None), ("6", "nul\0", "z")]
    assert [(record.record, record.reason) for record in bad] == [
        (6, "the row has 2 fields, and there are 3 columns"), (7, "the row has 4 fields, and there are 3 columns"),
        (8, "not valid UTF-8"), (9, "not a row of a CSV file: ',' expected after '\"'"),
        (12, "not a row of a CSV file: unexpected end of data")]


def test_tsv_and_columns(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text('a\t"b\tde\nc\td"\tfr\n')
    reader = Tsv(source="s", columns=("id", "text", "lang"), language_field="lang", metadata_fields=("lang", "none"))
    documents, bad = run(reader, tmp_path / "x.tsv")
    assert [(d["id"], d["text"], d["language"], d["metadata"]) for d in documents] == [
        ("a", '"b', "de", '{"lang":"de"}'), ("c", 'd"', "fr", '{"lang":"fr"}')] and not bad
    (tmp_path / "x.csv").write_text("id;text\n1;'a;b'\n")
    documents, _ = run(Csv(source="s", delimiter=";", quote="'"), tmp_path / "x.csv")
    assert texts(documents) == ["a;b"]


@pytest.mark.parametrize(("data", "reason"), [
    (b"id,body\n1,2\n", "no column `text`; columns: id, body"),
    (b"text,a,a\n1,2,3\n", "two columns have the same name"),
    (b"BZh", "a bzip2 file"),
])
def test_files_without_a_text_column(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    documents, bad = run(Csv(source="s"), tmp_path / "x.csv")
    assert not documents and reason in bad[0].reason and len(bad) == 1


def test_a_quotation_mark_that_is_never_closed_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('text\ngood\n"' + "line\n" * 4000 + 'end"\nlast\n')
    documents, bad = run(Csv(source="s", max_document_bytes=1000), tmp_path / "x.csv")
    assert texts(documents)[0] == "good" and "field larger than field limit (1000)" in bad[0].reason
    assert texts(documents)[-1] == "last"


@pytest.mark.parametrize("settings", [
    {"delimiter": ""}, {"delimiter": ",,"}, {"delimiter": "\n"}, {"quote": ","}, {"quote": "''"}, {"delimiter": "é"},
    {"max_document_bytes": 0},
])
def test_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(RecipeError):
        Csv(source="s", **settings)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.text(max_size=40)), max_size=10), st.integers(1, 200))
def test_what_is_written_is_read(rows: list[tuple[str, str]], batch_bytes: int) -> None:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "text"), *rows])
    documents, bad = run(Csv(source="s"), store(out.getvalue().encode()), batch_bytes)
    assert [(d["id"], d["text"]) for d in documents] == rows and not bad


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    for reader in (Csv(source="s", columns=("text",)), Tsv(source="s")):
        documents, bad = run(reader, store(b"text," + data))
        assert documents or bad or not data.strip() or isinstance(reader, Tsv)
