"""JSON lines: fields, ids, blank lines, byte order marks, long lines, batches."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.sources import Jsonl
from roots_pipeline.sources.decompress import Damage
from roots_pipeline.sources.lines import split_lines
from tests.sources.helpers import batches, run, texts


def write(path: Path, *lines: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = [line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in encoded))
    return path


def test_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", {
        "name": "a", "content": "text", "link": "https://h.example/", "lang": "pt", "rights": "CC0-1.0",
        "meta": {"b": [1, None]}, "stars": 4, "unused": 0,
    }, {"name": None, "content": "", "lang": None, "link": None})
    reader = Jsonl(source="s", text_field="content", id_field="name", url_field="link", language_field="lang",
                   license_field="rights", metadata_fields=("stars", "meta", "absent"))
    documents, bad = run(reader, path)
    assert not bad
    assert documents[0] == {
        "id": "a", "text": "text", "source": "s", "language": "pt", "url": "https://h.example/",
        "license": "CC0-1.0", "metadata": '{"stars":4,"meta":{"b":[1,null]}}', "verdict": None, "cause": None,
    }
    assert documents[1]["id"] == "x.jsonl:2" and documents[1]["text"] == "" and documents[1]["metadata"] is None


def test_missing_ids_are_stable_and_unique_across_folders(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "x.jsonl", {"text": "1"}, b"", {"text": "2", "id": ""})
    second = write(tmp_path / "b" / "x.jsonl", {"text": "3"})
    reader = Jsonl(source="s", root=str(tmp_path))
    ids = [document["id"] for path in (first, second) for document in run(reader, path)[0]]
    assert ids == ["a/x.jsonl:1", "a/x.jsonl:3", "b/x.jsonl:1"]
    assert run(Jsonl(source="s"), second)[0][0]["id"] == "x.jsonl:1"


@pytest.mark.parametrize(("value", "expected"), [
    ("7", "7"), ("-12", "-12"), ("18446744073709551615", "18446744073709551615"), ("2.5", "2.5"), ('"n"', "n"),
])
def test_ids_become_strings(tmp_path: Path, value: str, expected: str) -> None:
    documents, bad = run(Jsonl(source="s"), write(tmp_path / "x.jsonl", b'{"text": "t", "id": %s}' % value.encode()))
    assert [document["id"] for document in documents] == [expected] and not bad


@pytest.mark.parametrize("line", [
    b'{"text": "t", "id": true}', b'{"text": "t", "id": [1]}',
    b'{"text": "t", "id": 340282366920938463463374607431768}',
    b'{"text": "t", "url": 5}', b'{"text": "t", "lang": ["en"]}', b'{"text": "t", "rights": {}}',
])
def test_fields_of_the_wrong_type(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path / "x.jsonl", {"text": "good"}, line, {"text": "also good"})
    documents, bad = run(Jsonl(source="s", language_field="lang", license_field="rights"), path)
    assert texts(documents) == ["good", "also good"]
    assert [record.record for record in bad] == [2] and bad[0].excerpt == line.decode()


@pytest.mark.parametrize("line", [b"[]", b"3", b'"text"', b"null", b"true", b"NaN", b'{"text": "x"} {"text": "y"}'])
def test_lines_that_are_no_object(tmp_path: Path, line: bytes) -> None:
    assert [record.record for record in run(Jsonl(source="s"), write(tmp_path / "x.jsonl", line))[1]] == [1]


def test_metadata_deeper_than_the_writer_goes(tmp_path: Path) -> None:
    deep = b'{"text": "t", "meta": ' + b"[" * 900 + b"]" * 900 + b"}"
    path = write(tmp_path / "x.jsonl", {"text": "a", "meta": 1}, deep)
    documents, bad = run(Jsonl(source="s", metadata_fields=("meta",)), path)
    assert texts(documents) == ["a"] and "metadata" in bad[0].reason
    assert len(run(Jsonl(source="s"), path)[0]) == 2


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    text = "one\u0085two\u2028three\u2029four\x0bfive\x0csix\x1cseven\rend"
    raw = json.dumps({"text": text}, ensure_ascii=False).encode()
    assert texts(run(Jsonl(source="s"), write(tmp_path / "x.jsonl", raw))[0]) == [text]


def test_blank_lines_marks_and_line_ends(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    path = tmp_path / "x.jsonl"
    path.write_bytes(mark + b"\r\n\r\n \t\n" + b'{"text": "a"}\r\n' + mark + b'{"text": "b"}\n\n{"text": "c"}')
    documents, bad = run(Jsonl(source="s"), path)
    assert [(document["id"], document["text"]) for document in documents] == [
        ("x.jsonl:4", "a"), ("x.jsonl:5", "b"), ("x.jsonl:7", "c")]
    assert not bad
    path.write_bytes(mark * 100_000)
    assert [record.record for record in run(Jsonl(source="s"), path)[1]] == [1]


def test_language_from_the_file_name(tmp_path: Path) -> None:
    path = write(tmp_path / "zht.jsonl.gz", {"text": "a"})
    assert run(Jsonl(source="s", language_from="filename"), path)[0][0]["language"] == "zht"
    assert run(Jsonl(source="s", language="xx", license="L"), path)[0][0]["license"] == "L"


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(RecipeError, match="`language` and `language_from` contradict"):
        Jsonl(source="s", language="en", language_from="filename")
    with pytest.raises(RecipeError, match=r"source 's'.*max_document_bytes"):
        Jsonl(source="s", max_document_bytes=0)


def test_lines_over_the_limit_are_dropped_and_named(tmp_path: Path) -> None:
    lines = {"text": "a"}, {"text": "b" * 5000}, {"text": "c"}, b"d" * 3_000_000, {"text": "e"}
    path = write(tmp_path / "x.jsonl", *lines)
    documents, bad = run(Jsonl(source="s", max_document_bytes=100), path)
    assert texts(documents) == ["a", "c", "e"]
    assert [(record.record, record.reason) for record in bad] == [
        (2, "the line is longer than 100 bytes"), (4, "the line is longer than 100 bytes")]
    assert bad[0].excerpt.startswith('{"text": "bbb')


def test_a_line_over_the_limit_is_never_held_whole() -> None:
    def chunks() -> Iterator[bytes | Damage]:
        for _ in range(100):
            yield b"x" * 1_000_000
        yield b"\nshort\n"

    tracemalloc.start()
    lines = list(split_lines(chunks(), 4_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(lines[0][1], Damage) and lines[1] == (2, b"short")
    assert peak < 12_000_000


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_do_not_depend_on_chunks(size: int) -> None:
    data = b"\n\nab\n" + b"c" * 50 + b"\n\r\nlast"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    found = [line if isinstance(line, bytes) else line.reason for _, line in split_lines(chunks, 40)]
    assert found == [b"", b"", b"ab", "the line is longer than 40 bytes", b"\r", b"last"]


def test_batches_are_cut_by_size_and_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", *({"text": "x" * 100} for _ in range(5000)))
    reader = Jsonl(source="s")
    assert [batch.num_rows for batch in batches(reader, path)] == [2000, 2000, 1000]
    rows = [batch.num_rows for batch in batches(reader, path, 10_000)]
    assert sum(rows) == 5000 and max(rows) * 110 <= 10_200
    write(path, {"text": "a"}, {"text": "b" * 1_000_000}, {"text": "c"})
    assert [batch.num_rows for batch in batches(reader, path, 1000)] == [2, 1]


def test_a_file_that_cannot_be_opened_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        run(Jsonl(source="s"), tmp_path / "absent.jsonl")
    with pytest.raises(SourceError, match="Is a directory"):
        run(Jsonl(source="s"), tmp_path)


def test_excerpts_are_safe_to_print(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", b"\x1b[2J\xe2\x80\xae\xff" + b"z" * 1000)
    assert run(Jsonl(source="s"), path)[1][0].excerpt.startswith("\\x1b[2J\\u202e\\xffzzz")


@pytest.mark.shared
def test_real_text(shared: Path) -> None:
    documents, bad = run(Jsonl(source="s", language_field="lang"), shared / "data" / "corpus" / "eu.jsonl.zst")
    assert not bad and len({document["id"] for document in documents}) == len(documents) > 100
    assert {document["language"] for document in documents} == {"eu"}
