"""Parquet: string types, nulls, bytes that are not UTF-8, damaged pages, batches, memory."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roots_pipeline.sources import Parquet
from tests.sources.helpers import batches, run, texts

TEXT_TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()),
]


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def column(values: list[str | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, pa.string()).cast(kind)


def raw_strings(*values: bytes) -> pa.Array:
    """A string column whose bytes nobody has checked, as foreign writers make them."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))])


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
@pytest.mark.parametrize("batch_bytes", [1, 8 << 20])
def test_every_type_of_string(tmp_path: Path, kind: pa.DataType, batch_bytes: int) -> None:
    values = ["één", None, "", "水", "één", "x" * 1000]
    path = write(tmp_path / "x.parquet", {
        "text": column(values, kind), "id": column(["a", "b", None, "", "e", "f"], kind), "url": column(values, kind)})
    documents, bad = run(Parquet(source="s", license="L", language="nl"), path, batch_bytes)
    assert texts(documents) == [value for value in values if value is not None]
    assert [document["url"] for document in documents] == texts(documents)
    assert [document["id"] for document in documents] == ["a", "x.parquet:3", "x.parquet:4", "e", "f"]
    assert {(document["license"], document["language"]) for document in documents} == {("L", "nl")}
    assert [(record.record, record.reason, record.excerpt) for record in bad] == [(2, "`text` is null", "id: b")]


@pytest.mark.parametrize(("ids", "expected"), [
    (pa.array([1, None], pa.int8()), ["1", "x.parquet:2"]),
    (pa.array([2**64 - 1, 0], pa.uint64()), ["18446744073709551615", "0"]),
    (pa.array([1.5, None]), ["1.5", "x.parquet:2"]),
    (pa.array([decimal.Decimal("12345678901234567890123.5"), None]), ["12345678901234567890123.5", "x.parquet:2"]),
    (pa.nulls(2), ["x.parquet:1", "x.parquet:2"]),
])
def test_ids_become_strings(tmp_path: Path, ids: pa.Array, expected: list[str]) -> None:
    documents, bad = run(Parquet(source="s"), write(tmp_path / "x.parquet", {"id": ids, "text": ["a", "b"]}))
    assert [document["id"] for document in documents] == expected and not bad


def test_rows_that_are_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {
        "text": raw_strings(b"good", b"\xff\xfe", "ü".encode(), b"d"),
        "url": raw_strings(b"u1", b"u2", b"\xc3", b"u4"),
        "note": raw_strings(b"n1", b"n2", b"n3", b"\xf0\x9f"),
    })
    documents, bad = run(Parquet(source="s", metadata_fields=("note",)), path)
    assert [(document["text"], document["metadata"]) for document in documents] == [("good", '{"note":"n1"}')]
    assert [record.record for record in bad] == [2, 3, 4]
    assert "`text` is not valid UTF-8" in bad[0].reason and "`url`" in bad[1].reason and "metadata" in bad[2].reason


@pytest.mark.parametrize(("columns", "word"), [
    ({"content": ["a"]}, "no column `text`; columns: content"),
    ({"text": [1]}, "`text` is of type int64"),
    ({"text": [["a"]]}, "`text` is of type list"),
    ({"text": ["a"], "url": [1]}, "`url` is of type int64"),
    ({"text": ["a"], "id": [{"a": 1}]}, "`id` is of type struct"),
])
def test_a_file_with_the_wrong_columns_is_one_bad_file(tmp_path: Path, columns: dict[str, Any], word: str) -> None:
    documents, bad = run(Parquet(source="s"), write(tmp_path / "x.parquet", columns))
    assert documents == [] and [record.record for record in bad] == [None] and word in bad[0].reason


def test_fields_and_metadata(tmp_path: Path) -> None:
    path = write(tmp_path / "en.parquet", {
        "body": ["a", "b"], "stars": [3, None], "when": [datetime.date(2031, 5, 6), None], "raw": [b"\xffz", None],
        "meta": [{"text": "inner", "n": decimal.Decimal("1.5")}, None], "text": ["no", "no"],
    })
    reader = Parquet(source="s", text_field="body", language_from="filename",
                     metadata_fields=("stars", "meta", "when", "raw", "absent"))
    documents, bad = run(reader, path)
    assert not bad and texts(documents) == ["a", "b"] and documents[0]["language"] == "en"
    assert json.loads(documents[0]["metadata"]) == {
        "stars": 3, "meta": {"text": "inner", "n": "1.5"}, "when": "2031-05-06", "raw": "\\xffz"}
    assert json.loads(documents[1]["metadata"]) == dict.fromkeys(("stars", "meta", "when", "raw"))


def test_row_groups_and_batches(tmp_path: Path) -> None:
    values = [f"text {n} " * (n % 50) for n in range(7000)]
    path = write(tmp_path / "x.parquet", {"text": values, "id": list(range(7000))}, row_group_size=3100)
    documents, _ = run(Parquet(source="s"), path)
    assert texts(documents) == values and [document["id"] for document in documents] == [str(n) for n in range(7000)]
    sizes = [batch.column("text").nbytes for batch in batches(Parquet(source="s"), path, 20_000)]
    assert max(sizes) < 20_000 + 3000 * 8
    documents, bad = run(Parquet(source="s", max_document_bytes=300), path)
    assert texts(documents) == [value for value in values if len(value) <= 300]
    assert [record.record for record in bad] == [n + 1 for n, value in enumerate(values) if len(value) > 300]


def test_a_damaged_row_group_costs_its_own_rows_only(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {"text": [f"{n} " * 50 for n in range(300)]}, row_group_size=100,
                 compression="zstd", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    begin = chunk.data_page_offset
    data[begin : begin + chunk.total_compressed_size] = b"\xa5" * chunk.total_compressed_size
    path.write_bytes(bytes(data))
    documents, bad = run(Parquet(source="s"), path)
    assert [int(text.split()[0]) for text in texts(documents)] == [*range(100), *range(200, 300)]
    assert [record.record for record in bad] == [101] and "rows 101 to 200 cannot be read" in bad[0].reason


def test_checksums_are_verified(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {"text": [f"text {n} abcdefgh" for n in range(100)]}, row_group_size=50,
                 compression="none", use_dictionary=False, write_page_checksum=True)
    data = path.read_bytes()
    assert data.count(b"text 7 abcdefgh") == 1
    path.write_bytes(data.replace(b"text 7 abcdefgh", b"text 7 abcdefgx"))
    documents, bad = run(Parquet(source="s"), path)
    assert len(documents) == 50 and [record.record for record in bad] == [1]


def test_empty_and_foreign_files(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", {"text": pa.array([], pa.string())})
    assert run(Parquet(source="s"), path) == ([], [])
    for content in (b"", b"PAR1", b"not Parquet at all" * 10):
        path.write_bytes(content)
        documents, bad = run(Parquet(source="s"), path)
        assert documents == [] and [record.record for record in bad] == [None]
