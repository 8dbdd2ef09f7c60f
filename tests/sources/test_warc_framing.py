"""Cutting WARC files into records: every format, every damage, and no bytes without account."""

from __future__ import annotations

import gzip
import io
import random
import re
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
import zstandard
from fastwarc.stream_io import Lz4Writer
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st

from roots_pipeline.sources.warc_framing import Loss, RawRecord, read_records
from roots_pipeline.sources.warc_http import warc_headers
from tests.sources.warcs import http, members, page, pages, record

RECORDS = pages(4)
LIMIT = 1 << 20


def read(data: bytes, limit: int = LIMIT) -> tuple[list[RawRecord], list[Loss]]:
    found = list(read_records(io.BytesIO(data), limit))
    return [one for one in found if isinstance(one, RawRecord)], [one for one in found if isinstance(one, Loss)]


def blocks(found: list[RawRecord]) -> list[bytes]:
    return [one.block for one in found]


ALL = blocks(read(b"".join(RECORDS))[0])


def test_the_records_of_a_plain_file() -> None:
    found, lost = read(b"".join(RECORDS))
    assert not lost and [one.number for one in found] == list(range(1, 9))
    assert all(one.header.startswith(b"WARC/1.0\r\n") and one.header.endswith(b"\r\n\r\n") for one in found)
    assert ALL[1] == http(page("Page 0")) and all(one.wrong_length is None for one in found)


def lz4(data: bytes, folder: Path) -> bytes:
    writer = Lz4Writer(str(folder / "x.lz4"))
    writer.write(data)
    writer.close()
    return (folder / "x.lz4").read_bytes()


def zstd_with_dictionary(records: list[bytes]) -> bytes:
    """The frames of a .warc.zst: the dictionary first, in a skippable frame."""
    samples = [found[at : at + 200] for found in records * 20 for at in range(0, len(found), 50)]
    trained = zstandard.train_dictionary(2000, samples)
    compressor = zstandard.ZstdCompressor(dict_data=trained)
    head = struct.pack("<II", 0x184D2A5D, len(trained.as_bytes())) + trained.as_bytes()
    return head + b"".join(compressor.compress(found) for found in records)


@pytest.mark.parametrize("packing", [
    "a member a record", "one member", "members that end anywhere", "zstd", "zstd with a dictionary", "lz4", "lf",
    "padded", "version 1.1",
])
def test_packings(packing: str, tmp_path: Path) -> None:
    whole = b"".join(RECORDS)
    match packing:
        case "a member a record":
            data = members(RECORDS)
        case "one member":
            data = gzip.compress(whole)
        case "members that end anywhere":
            data = members([whole[at : at + 333] for at in range(0, len(whole), 333)])
        case "zstd":
            data = b"".join(zstandard.compress(found) for found in RECORDS)
        case "zstd with a dictionary":
            data = zstd_with_dictionary(RECORDS)
        case "lz4":
            data = lz4(whole, tmp_path)
        case "lf":  # only line ends that are not the page's own
            heads = [found.partition(b"\r\n\r\n") for found in RECORDS]
            data = b"".join(head.replace(b"\r\n", b"\n") + b"\n\n" + rest for head, _, rest in heads)
        case "padded":
            data = b"\0\r\n" + b"\r\n\r\n".join(RECORDS) + bytes(512)
        case _:
            data = whole.replace(b"WARC/1.0", b"WARC/1.1")
    found, lost = read(data)
    assert blocks(found) == ALL and not lost


@pytest.mark.parametrize("name", [
    "example.warc.gz", "example-trunc.warc", "example-wrong-chunks.warc.gz", "post-blackout.warc.gz",
    "whirlwind.warc.gz", "whirlwind.warc.wet.gz",
])
def test_real_files_give_the_records_that_fastwarc_gives(shared: Path, name: str) -> None:
    path = shared / "data" / "warc" / name
    with path.open("rb") as handle:
        peer = [(record.record_id, record.reader.read()) for record in ArchiveIterator(
            handle, parse_http=False, quirks_mode=True)]  # without it, iteration ends at a missing line end
    with path.open("rb") as handle:
        ours = list(read_records(handle, LIMIT))
    found = [one for one in ours if isinstance(one, RawRecord)]
    assert found == ours and len(found) == {"post-blackout.warc.gz": 117}.get(name, len(found)) == len(peer)
    assert [(warc_headers(one.header).get("WARC-Record-ID"), one.block) for one in found] == peer


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.55, 0.8, 0.99])
def test_a_cut_file_gives_its_whole_records_and_one_loss(packed: bool, share: float) -> None:
    data = members(RECORDS) if packed else b"".join(RECORDS)
    found, lost = read(data[: int(share * len(data))])
    assert blocks(found) == ALL[: len(found)] and len(found) < 8
    assert [loss.number for loss in lost] == [len(found) + 1] and "cut off" in lost[0].reason


@pytest.mark.parametrize("length", [None, 0, 7, "nine", 100_000, 99_999_999_999, 10**30])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("index", [0, 3, 7])
def test_a_wrong_length_costs_nothing(length: int | str | None, packed: bool, index: int) -> None:
    records = [*RECORDS]
    records[index] = record(ALL[index], name="wrong", length=length)
    found, lost = read(members(records) if packed else b"".join(records))
    if length in (0, 7) and (index == 7 or packed):  # nothing follows that shows the end: the length is believed
        assert len(found) == 8 and len(lost) == 1 and "belong to no WARC record" in lost[0].reason
        return
    assert blocks(found) == ALL and not lost
    assert [one.number for one in found if one.wrong_length] == [index + 1]


def test_a_block_may_hold_what_looks_like_a_record() -> None:
    inner = record(http(b"<p>inside</p>"), name="inner")
    found, lost = read(record(http(inner), name="outer") + RECORDS[1])
    assert blocks(found) == [http(inner), ALL[1]] and not lost


def test_a_missing_line_end_is_told() -> None:
    first = RECORDS[1]
    found, lost = read(first[:-2] + RECORDS[3])
    assert blocks(found) == [ALL[1], ALL[3]] and not lost and "too closely" in (found[0].wrong_length or "")


@pytest.mark.parametrize("size", [1, 500, 70_000, 3_000_000])
def test_what_stands_between_records_is_counted(size: int) -> None:
    found, lost = read(RECORDS[1] + b"j" * size + b"\r\n" + RECORDS[3])
    assert blocks(found) == [ALL[1], ALL[3]]
    wrong = found[0].wrong_length or ""
    if size < LIMIT:  # taken for the end of the block before it
        assert f"{len(ALL[1]) + 4 + size:,} bytes" in wrong or lost or wrong
    assert lost or wrong


def test_a_damaged_member_costs_itself() -> None:
    packed = [gzip.compress(found, mtime=0) for found in RECORDS]
    middle = packed[3]
    packed[3] = middle[:40] + bytes(byte ^ 0xFF for byte in middle[40:60]) + middle[60:]
    found, lost = read(b"".join(packed))
    assert blocks(found) == ALL[:3] + ALL[4:]
    assert len(lost) == 1 and "damaged" in lost[0].reason


def test_headers_that_never_end() -> None:
    for size in (100, 100_000):
        found, lost = read(RECORDS[1] + b"WARC/1.0\r\nWARC-Type: response\r\nX: " + b"x" * size)
        assert blocks(found) == [ALL[1]] and lost and lost[0].number == 2
    found, lost = read(b"WARC/1.0\r\nWARC-Type: response\r\n" + RECORDS[1])
    assert blocks(found) == [ALL[1]] and "does not end" in lost[0].reason


@pytest.mark.parametrize("data", [
    b"", b"\r\n\r\n", b"not a web archive\n" * 10, b"\x1f\x8b", b"WARC/", b"WARC/1.0\r\n"])
def test_files_without_records(data: bytes) -> None:
    found, lost = read(data)
    assert not found and len(lost) == bool(data.strip())


def test_floods_of_beginnings_end_soon() -> None:
    for flood in (b"WARC/1.0\r\n" * 200_000, b"WARC/" * 300_000, b"WARC/1.0\r\n\r\n" * 20_000, b"j" * 5_000_000):
        found, lost = read(flood + b"\r\n\r\n" + RECORDS[1])
        assert found[-1].block == ALL[1] and len(lost) + len(found) <= 40_000


def test_blocks_over_the_limit_are_not_held() -> None:
    file = io.BytesIO(record(http(b"x" * 60_000_000), name="big") + RECORDS[1])
    tracemalloc.start()
    items = list(read_records(file, 100_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    found = [one for one in items if isinstance(one, RawRecord)]
    assert len(items) == 2 and found[0].size > 60_000_000 and len(found[0].block) <= 100_000
    assert found[1].block == ALL[1] and peak < 20_000_000


def test_an_error_of_the_disk_is_no_loss(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 0:
                raise OSError(5, "Input/output error")
            return super().read(size)

    data = record(http(random.Random(5).randbytes(3 << 20)), name="noise")
    for packed in (data, lz4(data, tmp_path), gzip.compress(data)):
        with pytest.raises(OSError, match="Input/output"):
            list(read_records(Broken(packed), LIMIT))


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 10**9), st.binary(min_size=1, max_size=40), st.booleans(), st.sampled_from(["cut", "put", "over"]))
def test_damage_anywhere_is_noticed(place: int, noise: bytes, packed: bool, how: str) -> None:
    data = members(RECORDS) if packed else b"".join(RECORDS)
    at = place % len(data)
    match how:
        case "cut":
            damaged = data[:at] + data[at + len(noise) :]
        case "put":
            damaged = data[:at] + noise + data[at:]
        case _:
            damaged = data[:at] + noise + data[at + len(noise) :]
    found, lost = read(damaged)
    right = [one for one in found if one.block in ALL]
    changed = [one for one in found if one.block not in ALL]
    assert len(right) >= 5  # damage reaches no further than the records it touches
    if packed and damaged != data and not _header_only(data, damaged):
        assert lost or changed or len(right) == len(ALL)
    if len(found) < len(ALL):
        assert lost or any(one.wrong_length for one in found)


def _header_only(one: bytes, other: bytes) -> bool:
    """Whether the change is in what gzip does not check."""
    try:
        return gzip.decompress(one) == gzip.decompress(other)
    except (OSError, EOFError, zlib.error):
        return False


@settings(deadline=None)
@given(st.lists(st.sampled_from([
    b"WARC/1.0\r\n", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"\r\n", b"x",
    b"WARC-Type: response\r\n", b"\n", b"\0", b"WARC/", b"Content-Length: 999999\r\n", b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
]), max_size=40).map(b"".join), st.integers(1, 50))
def test_any_bytes_end(data: bytes, limit: int) -> None:
    found, lost = read(data, limit)
    accounted = sum(len(one.header) + one.size for one in found)
    assert accounted <= len(data) or re.match(rb"\x1f\x8b", data)
    assert found or lost or not data.strip(b"\r\n \t\0")
