"""Properties: what is written is read back, and no bytes whatever make a reader fail or lose a record."""

from __future__ import annotations

import gzip
import json
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from roots_pipeline.sources import SOURCES, FileSlice, Jsonl, Parquet, Quarantined, read_files
from tests.sources.helpers import run, texts

ADDRESS = "memory://round-trip/x"
MARK = b"\xef\xbb\xbf"
RECORDS = st.lists(st.fixed_dictionaries({
    "id": st.text(min_size=1, max_size=5), "text": st.text(max_size=60), "url": st.none() | st.text(max_size=9),
    "lang": st.none() | st.text(max_size=3), "n": st.integers(-9, 9),
}), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3), max_leaves=5,
)
MAGICS = st.sampled_from([
    b"", b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\x28\xb5\x2f\xfd", b"\x5a\x2a\x4d\x18", b"PAR1", b"\xff\xfe"])


def store(data: bytes) -> str:
    fsspec.filesystem("memory").pipe("/round-trip/x", data)
    return ADDRESS


def check(documents: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    assert [(d["id"], d["text"], d["url"], d["language"]) for d in documents] == [
        (r["id"], r["text"], r["url"], r["lang"]) for r in records]
    assert [json.loads(document["metadata"]) for document in documents] == [{"n": record["n"]} for record in records]


@settings(deadline=None)
@given(RECORDS, st.sampled_from(["plain", "gz", "zst"]), st.booleans(), st.integers(1, 300))
def test_jsonl(records: list[dict[str, Any]], packing: str, ascii_only: bool, batch_bytes: int) -> None:
    data = b"".join(json.dumps(record, ensure_ascii=ascii_only).encode() + b"\n" for record in records)
    if packing != "plain":
        data = gzip.compress(data) if packing == "gz" else zstandard.compress(data)
    reader = Jsonl(source="s", language_field="lang", metadata_fields=("n",))
    documents, bad = run(reader, store(data), batch_bytes)
    check(documents, records)
    assert not bad


@settings(deadline=None)
@given(RECORDS, st.integers(1, 300), st.integers(1, 5))
def test_parquet(records: list[dict[str, Any]], batch_bytes: int, group: int) -> None:
    out = pa.BufferOutputStream()
    schema = pa.schema([(name, pa.string()) for name in ("id", "text", "url", "lang")] + [("n", pa.int64())])
    pq.write_table(pa.Table.from_pylist(records, schema=schema), out, row_group_size=group)
    reader = Parquet(source="s", language_field="lang", metadata_fields=("n",))
    documents, bad = run(reader, store(out.getvalue().to_pybytes()), batch_bytes)
    check(documents, records)
    assert not bad


def counted(data: bytes) -> int:
    """Lines that are not blank, a byte order mark at their beginning aside."""
    return sum(1 for line in data.split(b"\n") if line.removeprefix(MARK).strip())


PIECES = st.sampled_from([
    b"\n", b"\r\n", b" ", MARK, b'{"text": "a"}', b'{"text": "b", "id": 1}', b'{"text": 1}', b'{"text": "', b'"}',
    b"[]", b"\x00", b"\xff", b"\xc3", b"\x85", b"\x0b", b'{"text": "\\ud800"}', b"1e999", b"{", b"}",
    b'{"id": {}, "text": ""}',
])


@settings(deadline=None, max_examples=300)
@given(st.lists(PIECES | st.binary(max_size=20), max_size=30).map(b"".join), st.integers(1, 200))
def test_any_bytes_are_good_or_bad(data: bytes, batch_bytes: int) -> None:
    documents, bad = run(Jsonl(source="s"), store(b"x" + data), batch_bytes)  # x: not the magic of another format
    assert len(documents) + len(bad) == counted(b"x" + data)
    unnamed = [document["id"] for document in documents if document["id"].startswith("x:")]
    records = [record.record for record in bad] + [int(name.removeprefix("x:")) for name in unnamed]
    assert len(set(records)) == len(records)


@settings(deadline=None)
@given(MAGICS, st.binary(max_size=200))
def test_no_bytes_make_a_reader_fail(head: bytes, data: bytes) -> None:
    for reader in (Jsonl(source="s"), Parquet(source="s")):
        documents, bad = run(reader, store(head + data))
        assert documents or bad or not (head + data).removeprefix(MARK).strip()


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=30), st.integers(0, 10**6), st.sampled_from(["gz", "zst", "parquet"]))
def test_a_damaged_file_never_passes_for_a_whole_one(noise: bytes, place: int, kind: str) -> None:
    original = [f"line {n} of a small file" for n in range(50)]
    lines = [json.dumps({"text": text}).encode() + b"\n" for text in original]
    reader: Jsonl | Parquet = Jsonl(source="s")
    if kind == "parquet":
        out = pa.BufferOutputStream()
        pq.write_table(pa.table({"text": original}), out, write_page_checksum=True)
        packed, reader = out.getvalue().to_pybytes(), Parquet(source="s")
    elif kind == "gz":
        packed = gzip.compress(b"".join(lines))
    else:
        packed = zstandard.ZstdCompressor(write_checksum=True).compress(b"".join(lines))
    cut = packed[: place % len(packed)]
    documents, bad = run(reader, store(cut))
    assert bad or (not cut and kind != "parquet")
    assert texts(documents) == original[: len(documents)]
    at = 10 + place % (len(packed) - 10)
    documents, bad = run(reader, store(packed[:at] + noise + packed[at:]))
    assert bad or texts(documents) == original or kind == "parquet"  # whose footer has no checksum: it must not raise


@settings(deadline=None)
@given(st.lists(JSON, min_size=1, max_size=8))
def test_json_values_of_any_kind(values: list[Any]) -> None:
    data = b"".join(json.dumps({"text": value}).encode() + b"\n" for value in values)
    documents, bad = run(Jsonl(source="s"), store(data))
    assert texts(documents) == [value for value in values if isinstance(value, str)]
    assert [record.record for record in bad] == [n + 1 for n, value in enumerate(values) if not isinstance(value, str)]


@settings(deadline=None)
@given(st.lists(st.lists(st.text(max_size=30), max_size=6), max_size=6), st.integers(1, 80))
def test_small_files_come_together(files: list[list[str]], batch_bytes: int) -> None:
    memory = fsspec.filesystem("memory")
    slices = []
    for number, content in enumerate(files):
        lines = [json.dumps({"text": text}).encode() + b"\n" for text in [*content, 0]]
        memory.pipe(f"/round-trip/{number}", b"".join(lines))
        slices.append(FileSlice(f"memory://round-trip/{number}", 0))
    items = list(read_files(Jsonl(source="s"), slices, batch_bytes))
    batches = [item for item in items if not isinstance(item, Quarantined)]
    assert [text for batch in batches for text in batch.column("text").to_pylist()] == [t for f in files for t in f]
    assert len(items) - len(batches) == len(files)
    assert all(batch.column("text").nbytes >= batch_bytes for batch in batches[:-1])


def test_the_table_of_readers() -> None:
    assert list(SOURCES) == [
        "jsonl", "parquet", "csv", "tsv", "text", "html", "warc", "wet", "code", "hf", "datatrove"]
    for name, kind in SOURCES.items():
        reader = TypeAdapter(kind).validate_python({"source": "s", "license": "CC0-1.0"})
        assert reader.name == name and reader.suffixes
        assert reader == TypeAdapter(kind).validate_python({"source": "s", "license": "CC0-1.0"})
    listed = TypeAdapter(Jsonl).validate_python({"source": "s", "metadata_fields": ["a", "b"]})
    assert listed.metadata_fields == ("a", "b")
    with pytest.raises(ValueError, match="language_from"):
        TypeAdapter(Jsonl).validate_python({"source": "s", "language_from": "nowhere"})
