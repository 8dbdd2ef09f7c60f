"""Compressed input: told by its bytes, many members, cut, damaged, hostile."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from roots_pipeline.sources import Jsonl
from roots_pipeline.sources.decompress import Damage, decompressed
from tests.sources.helpers import run, texts

Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
LINES = [
    json.dumps({"id": str(n), "text": f"text number {n} " + str(n * 7919) * 5}).encode() + b"\n" for n in range(600)]


def content(data: bytes) -> tuple[bytes, list[str]]:
    pieces = list(decompressed(io.BytesIO(data)))
    damage = [piece.reason for piece in pieces if isinstance(piece, Damage)]
    return b"".join(piece for piece in pieces if isinstance(piece, bytes)), damage


@pytest.mark.parametrize("kind", PACKS)
@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.jsonl.zst"])
def test_the_name_does_not_matter(tmp_path: Path, kind: str, name: str) -> None:
    (tmp_path / name).write_bytes(PACKS[kind](b"".join(LINES)))
    documents, bad = run(Jsonl(source="s"), tmp_path / name)
    assert [document["id"] for document in documents] == [str(n) for n in range(600)] and not bad


@pytest.mark.parametrize("kind", PACKS)
def test_members_follow_each_other_and_may_end_inside_a_line(kind: str) -> None:
    data = b"".join(LINES)
    for size in (1, 77, 5000):
        part = data[: 40 * size]
        packed = b"".join(PACKS[kind](part[at : at + size]) for at in range(0, len(part), size))
        assert content(packed) == (part, [])


@pytest.mark.parametrize("kind", PACKS)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_a_cut_file_gives_its_whole_lines_and_one_bad_record(tmp_path: Path, kind: str, share: float) -> None:
    packed = PACKS[kind](b"".join(LINES))
    packed = packed[: int(len(packed) * share)]
    whole, damage = content(packed)
    assert len(damage) == 1 and "cut off" in damage[0] and b"".join(LINES).startswith(whole)
    (tmp_path / "x.jsonl").write_bytes(packed)
    documents, bad = run(Jsonl(source="s"), tmp_path / "x.jsonl")
    assert len(documents) == whole.count(b"\n")
    assert [record.record for record in bad] == [len(documents) + 1]


def test_gzip_gives_all_that_can_be_decompressed_before_the_cut() -> None:
    packed = gzip.compress(b"".join(LINES))[:3000]
    reference = b""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file, pytest.raises(EOFError):
        while True:
            reference += file.read(1)
    assert content(packed)[0] == reference


def test_every_cut_of_a_small_file_is_reported() -> None:
    data = b'{"text": "a"}\n{"text": "b"}\n'
    for kind, pack in PACKS.items():
        packed = pack(data)
        for length in range(11, len(packed)):
            whole, damage = content(packed[:length])
            assert len(damage) == 1 and data.startswith(whole), (kind, length)


@pytest.mark.parametrize("kind", PACKS)
def test_one_damaged_member_does_not_cost_the_next_ones(tmp_path: Path, kind: str) -> None:
    members = [PACKS[kind](b"".join(LINES[at : at + 100])) for at in range(0, 600, 100)]
    middle = bytearray(members[2])
    middle[len(middle) // 2 : len(middle) // 2 + 40] = bytes(range(100, 140))
    members[2] = bytes(middle)
    (tmp_path / "x.jsonl").write_bytes(b"".join(members))
    documents, bad = run(Jsonl(source="s"), tmp_path / "x.jsonl")
    ids = [document["id"] for document in documents if int(document["id"]) not in range(200, 300)]
    assert ids == [str(n) for n in range(600) if n not in range(200, 300)]
    assert sum("stream is damaged" in record.reason for record in bad) == 1


@pytest.mark.parametrize("kind", PACKS)
def test_a_wrong_checksum_is_reported(kind: str) -> None:
    packed = bytearray(PACKS[kind](b"".join(LINES)))
    packed[-5 if kind == "gz" else -1] ^= 1
    assert len(content(bytes(packed))[1]) == 1


def test_padding_garbage_and_skippable_frames() -> None:
    data = b"".join(LINES)
    assert content(gzip.compress(data) + bytes(1000)) == (data, [])
    whole, damage = content(gzip.compress(data) + b"garbage after the end")
    assert whole == data and len(damage) == 1
    frame = PACKS["zst"](data)
    skippable = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    assert content(skippable + frame + skippable + frame) == (data + data, [])


def test_windows_larger_than_the_default_limit() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(b"x" * 100) + packer.flush()
    assert content(packed) == (b"x" * 100, [])


@pytest.mark.parametrize("kind", PACKS)
def test_a_bomb_comes_out_in_pieces(kind: str) -> None:
    packed = PACKS[kind](bytes(50_000_000))
    sizes = [len(piece) for piece in decompressed(io.BytesIO(packed)) if isinstance(piece, bytes)]
    assert sum(sizes) == 50_000_000
    if kind == "gz":
        assert max(sizes) <= 3 << 20


@pytest.mark.parametrize(("data", "word"), [
    (b"BZh91AY&SY", "bzip2"), (b"\xfd7zXZ\x00\x00", "xz"), (b"PK\x03\x04", "zip"), (b"PAR1\x15", "Parquet"),
    ("\ufeff{}".encode("utf-16-le"), "UTF-16"), ("\ufeff{}".encode("utf-16-be"), "UTF-16"),
])
def test_formats_that_are_not_lines_are_one_bad_record(tmp_path: Path, data: bytes, word: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(data + b"\n" * 10)
    documents, bad = run(Jsonl(source="s"), tmp_path / "x.jsonl")
    assert documents == [] and len(bad) == 1 and word in bad[0].reason


def test_text_that_begins_like_gzip_is_text(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\x1f\x8b is not gzip\n" + b'{"text": "a"}\n')
    documents, bad = run(Jsonl(source="s"), tmp_path / "x.jsonl")
    assert texts(documents) == ["a"] and [record.record for record in bad] == [1]
