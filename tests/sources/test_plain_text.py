"""Plain text: files, lines, paragraphs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources import Text, discover
from tests.sources.helpers import run, texts
from tests.sources.test_round_trip import store

TEXT = "\ufeffone\r\ntwo\r\n\r\nthree é\n \n\u3000\nfour\n\nfive\u2028six"


def test_a_file_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "fr.a.txt").write_bytes("Déjà vu, où ça? ".encode("cp1252") * 20)
    (tmp_path / "en.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    reader = Text(source="s", root=str(tmp_path), language_from="filename", license="CC0-1.0")
    found = [run(reader, file.path)[0][0] for file in discover(str(tmp_path), reader.suffixes)]
    assert [(d["id"], d["language"], d["license"]) for d in found] == [
        ("d/fr.a.txt", "fr", "CC0-1.0"), ("en.txt.gz", "en", "CC0-1.0")]
    assert found[0]["text"] == "Déjà vu, où ça? " * 20 and found[0]["metadata"] == '{"charset":"cp1252","replaced":0}'
    assert found[1]["text"] == TEXT[1:] and found[1]["metadata"] is None


@pytest.mark.parametrize(("unit", "expected"), [
    ("line", [(1, "one"), (2, "two"), (4, "three é"), (7, "four"), (9, "five\u2028six")]),
    ("paragraph", [(1, "one\ntwo"), (4, "three é"), (7, "four"), (9, "five\u2028six")]),
])
def test_lines_and_paragraphs(tmp_path: Path, unit: str, expected: list[tuple[int, str]]) -> None:
    (tmp_path / "x.txt").write_bytes(TEXT.replace("\u3000", "").encode())
    for batch_bytes in (1, 1 << 20):
        documents, bad = run(Text(source="s", unit=unit), tmp_path / "x.txt", batch_bytes)  # type: ignore[arg-type]
        assert [(d["id"], d["text"]) for d in documents] == [(f"x.txt:{n}", text) for n, text in expected] and not bad


def test_bad_input(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"good\n\xff bad\n\n" + b"x" * 99 + b"\n\n" + b"yyyy\n" * 30 + b"\nlast")
    documents, bad = run(Text(source="s", unit="line", max_document_bytes=50), tmp_path / "x.txt")
    assert texts(documents) == ["good", *["yyyy"] * 30, "last"]
    assert [(record.record, record.reason) for record in bad] == [
        (2, "not valid UTF-8"), (4, "the line is longer than 50 bytes")]
    documents, bad = run(Text(source="s", unit="paragraph", max_document_bytes=50), tmp_path / "x.txt")
    assert texts(documents) == ["last"] and [(record.record, record.reason) for record in bad] == [
        (1, "not valid UTF-8"), (4, "the line is longer than 50 bytes"), (6, "the paragraph is longer than 50 bytes")]
    documents, bad = run(Text(source="s", max_document_bytes=50), tmp_path / "x.txt")
    assert not documents and bad[0].reason == "the file is larger than 50 bytes"
    (tmp_path / "y.txt").write_bytes(bytes(range(256)) * 40)
    assert run(Text(source="s"), tmp_path / "y.txt")[1][0].reason == "no charset fits its bytes"
    (tmp_path / "z.txt").write_bytes(gzip.compress(b"text " * 1000)[:-10])
    assert "cut off" in run(Text(source="s"), tmp_path / "z.txt")[1][0].reason
    with pytest.raises(RecipeError, match="max_document_bytes"):
        Text(source="s", max_document_bytes=0)


LINES = st.text(st.characters(exclude_characters="\r\n\ufeff", codec="utf-8"), min_size=1, max_size=9).filter(
    lambda line: not line.encode().isspace())


@settings(deadline=None)
@given(st.lists(st.lists(LINES, min_size=1, max_size=4), max_size=5))
def test_paragraphs_are_read_back(paragraphs: list[list[str]]) -> None:
    wanted = ["\n".join(lines) for lines in paragraphs]
    documents, bad = run(Text(source="s", unit="paragraph"), store(b"".join(
        text.encode() + b"\n\n" for text in ["x", *wanted])))
    assert texts(documents)[1:] == wanted and not bad
