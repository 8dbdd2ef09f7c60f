"""Parts of a file, read one by one, give what the whole file gives: the same documents, ids and bad records."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.config import CorpusRecipe, load_corpus_recipe
from roots_pipeline.core.errors import SourceError
from roots_pipeline.core.replay import Replay, Unfinished
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.inputs import hash_and_count, hash_inputs, input_files
from roots_pipeline.shards import automatic_size, plan_shards
from roots_pipeline.sources import FileSlice, Jsonl, Parquet, Quarantined, Reader, Text, read_files
from roots_pipeline.sources.base import ByteRange, Part
from tests.sources import helpers

ADDRESS = "memory://parts/x"
PIECES = st.one_of(
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b" ", b'{"text": "a"}\n', b'{"text": "b", "id": 1}\r\n', b"[]\n", b"\xff",
                     b"\xef\xbb\xbf", b'{"text": "', b'"}\n',
                     "{\"text\": \"\u0939\u093f\u0928 \U0001f600\"}\n".encode(),
                     b'{"text": "' + b"x" * 40 + b'"}\n']),
    st.binary(max_size=4),
)


def in_parts(reader: Any, data: bytes, borders: list[int]) -> tuple[list[dict[str, Any]], list[Quarantined]]:
    documents: list[dict[str, Any]] = []
    bad: list[Quarantined] = []
    ends = sorted({min(border, len(data)) for border in borders} | {0, len(data)})
    for begin, end in pairwise(ends):
        part = ByteRange(begin, end, data.count(b"\n", 0, max(0, begin - 1)))
        for item in reader.read_part(ADDRESS, part):
            if isinstance(item, Quarantined):
                bad.append(item)
            else:
                documents += item.to_pylist()
    return documents, bad


@pytest.mark.parametrize("reader", [Jsonl(source="s", max_document_bytes=45), Text(source="s", unit="line")])
def test_any_cut_gives_the_same_records(reader: Any) -> None:
    @settings(deadline=None, max_examples=300)
    @given(st.lists(PIECES, max_size=12), st.lists(st.integers(0, 200), max_size=6))
    def check(pieces: list[bytes], borders: list[int]) -> None:
        data = b"{" + b"".join(pieces)  # the first byte says that this is plain
        fsspec.filesystem("memory").pipe("/parts/x", data)
        documents, bad = helpers.run(reader, ADDRESS)
        found, found_bad = in_parts(reader, data, borders)
        assert found == documents
        assert sorted(found_bad, key=lambda item: item.record or 0) == sorted(bad, key=lambda item: item.record or 0)

    check()


@pytest.mark.parametrize("border", [1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_lines_longer_than_parts_and_blocks(border: int) -> None:
    data = b"".join(b"x" * size + b"\n" for size in (1, (1 << 20) - 2, 1 << 20, (5 << 20) + 7, 0, 3)) + b"last"
    fsspec.filesystem("memory").pipe("/parts/x", data)
    reader = Text(source="s", unit="line")
    documents, _ = helpers.run(reader, ADDRESS)
    assert in_parts(reader, data, list(range(0, len(data), border)) if border > 9 else [1, 2, 3]) == (documents, [])


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 9))
def test_row_groups(groups: list[int], wanted: int) -> None:
    out = pa.BufferOutputStream()
    rows = 0
    with pq.ParquetWriter(out, pa.schema([("text", pa.string())])) as writer:
        for size in groups:
            texts = [f"t{row}" * 50 * (row % 3) for row in range(rows, rows + size)]
            writer.write_table(pa.table({"text": texts}), row_group_size=size)
            rows += size
    data = out.getvalue().to_pybytes()
    fsspec.filesystem("memory").pipe("/parts/x", data)
    reader = Parquet(source="s")
    parts = reader.parts(ADDRESS, len(data), wanted)
    assert len(parts) <= max(1, wanted)
    assert read(reader, parts) == read(reader, [None])


def read(reader: Reader, parts: list[Part] | list[None]) -> list[dict[str, Any]]:
    items = read_files(reader, [FileSlice(ADDRESS, 0, part) for part in parts])
    return [row for item in items if not isinstance(item, Quarantined) for row in item.to_pylist()]


@settings(deadline=None)
@given(st.binary(max_size=300), st.sets(st.integers(0, 300), max_size=5))
def test_line_ends_are_counted_while_hashing(data: bytes, places: set[int]) -> None:
    fsspec.filesystem("memory").pipe("/parts/x", data)
    wanted = sorted(place for place in places if place < len(data))
    assert hash_and_count(ADDRESS, wanted)[1] == [data.count(b"\n", 0, place) for place in wanted]


def lines_file(path: Path, count: int, compressed: bool = False) -> None:
    words = "wörter " * 100
    data = b"".join(json.dumps({"text": f"line {number} {words}"}).encode() + b"\n" for number in range(count))
    path.parent.mkdir(exist_ok=True)
    with fsspec.open(str(path), "wb", compression="gzip" if compressed else None) as out:
        out.write(data)


def test_large_files_are_cut_and_others_are_not(tmp_path: Path) -> None:
    lines_file(tmp_path / "in" / "a.jsonl", 6000)
    lines_file(tmp_path / "in" / "b.jsonl", 20)
    lines_file(tmp_path / "in" / "named-badly.jsonl", 20000, compressed=True)
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in")}
    recipe = CorpusRecipe.model_validate({"sources": [source], "shard_size": 1})
    planned = plan_shards(recipe)
    with LocalEngine(1) as engine:
        shards, hashes = hash_inputs(engine, planned, input_files(planned), str(tmp_path / "run"))
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "in").glob("*.jsonl")}
    assert [Path(shard.files[0].path).name for shard in shards] == ["a.jsonl"] * (sizes["a.jsonl"] >> 20) + [
        "b.jsonl", "named-badly.jsonl"]
    assert sizes["a.jsonl"] >> 20 >= 4 and len(hashes) == 3
    assert sum(shard.size for shard in shards) == sum(sizes.values())
    reader = recipe.sources[0].reader
    ids = [row["id"] for shard in shards for item in read_files(reader, shard.files)
           if not isinstance(item, Quarantined) for row in item.to_pylist()]
    assert ids[:6000] == [f"a.jsonl:{number}" for number in range(1, 6001)]
    assert hash_inputs(Replay(), planned, input_files(planned), str(tmp_path / "run")) == (shards, hashes)
    (tmp_path / "in" / "b.jsonl").write_bytes(b"{}\n")
    with pytest.raises(Unfinished, match=f"hash inputs: 1 of {len(list((tmp_path / 'in').iterdir()))} tasks"):
        hash_inputs(Replay(), planned, input_files(planned), str(tmp_path / "run"))


def test_a_file_that_changes_before_it_is_hashed_is_an_error(tmp_path: Path) -> None:
    lines_file(tmp_path / "in" / "a.jsonl", 3)
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in")}
    planned = plan_shards(CorpusRecipe.model_validate({"sources": [source]}))
    files = input_files(planned)
    lines_file(tmp_path / "in" / "a.jsonl", 4)
    with LocalEngine(1) as engine, pytest.raises(SourceError, match=r"a\.jsonl: this file was changed during the run"):
        hash_inputs(engine, planned, files, str(tmp_path / "run"))
    assert list((tmp_path / "run").rglob("*.json")) == []


@pytest.mark.parametrize(
    ("inputs", "size"), [(0, 200_000), (12_800_000, 200_000), (12_800_001, 400_000), (10**9, 12_800_000),
                         (10**13, 12_800_000)])
def test_shards_grow_with_the_inputs_by_steps_of_two(inputs: int, size: int) -> None:
    assert automatic_size(inputs) == size


def test_recipes_do_not_inherit_a_size_of_shards(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(300):
        (tmp_path / "in" / f"{number:03d}.jsonl").write_bytes(b"x" * 100_000)
    (tmp_path / "own.yaml").write_text(
        f"corpus: {{sources: [{{name: s, kind: jsonl, path: {tmp_path / 'in'}}}], stages: []}}")
    shards = plan_shards(load_corpus_recipe(str(tmp_path / "own.yaml")))
    assert len(shards[0].files) == 8  # 800 kB of 30 MB: what the recipe extends is for the sample
