"""The file format: golden bytes, round trips, every kind of damage, and files beyond 32 bits."""

from __future__ import annotations

import base64
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.indexed import (
    DTYPE_CODES,
    HEADER_BYTES,
    MAGIC,
    IndexedReader,
    IndexedWriter,
    dtype_code,
    indexed_writer,
    paths,
    token_dtype,
    write_index,
)
from roots_pipeline.core.errors import MixtureError, StorageError
from roots_pipeline.core.storage import commit_file
from tests.mixtures.golden import load

Documents = list[list[list[int]]]


def write(prefix: Path, documents: Documents, dtype: str, block: int = 2) -> None:
    """Write documents of sequences in blocks of a few documents."""
    with indexed_writer(str(prefix), dtype, commit_file) as writer:
        for start in range(0, len(documents), block):
            part = documents[start : start + block]
            sequences = [sequence for document in part for sequence in document]
            tokens = np.array([token for sequence in sequences for token in sequence], np.int64)
            lengths = np.array([len(sequence) for sequence in sequences], np.int64)
            writer.append(tokens, lengths, np.array([len(document) for document in part]))


def test_golden_files(shared: Path, tmp_path: Path) -> None:
    golden = load(shared, "06_indexed")
    for case in golden["datasets"]:
        prefix = tmp_path / case["name"]
        write(prefix, case["documents_as_sequences"], case["dtype"])
        assert Path(f"{prefix}.bin").read_bytes() == base64.b64decode(case["bin_base64"])
        assert Path(f"{prefix}.idx").read_bytes() == base64.b64decode(case["idx_base64"])
        reader = IndexedReader(str(prefix))
        reader.check()
        assert reader.lengths.tolist() == case["sequence_lengths"]
        assert reader.offsets.tolist() == case["byte_offsets"]
        assert reader.document_index.tolist() == case["document_indices"]
        sequences = [sequence for document in case["documents_as_sequences"] for sequence in document]
        assert [reader[number].tolist() for number in range(len(reader))] == sequences
    for case in golden["merged"]:
        merged = tmp_path / "merged"
        with indexed_writer(str(merged), case["dtype"], commit_file) as writer:
            writer.merge(IndexedReader(str(tmp_path / case["first"])))
            writer.merge(IndexedReader(str(tmp_path / case["second"])))
        assert Path(f"{merged}.bin").read_bytes() == base64.b64decode(case["bin_base64"])
        assert Path(f"{merged}.idx").read_bytes() == base64.b64decode(case["idx_base64"])


def test_golden_types(shared: Path) -> None:
    golden = load(shared, "06_indexed")["dtype_codes"]
    for name, code in golden["core"].items():
        if name.startswith("float"):
            with pytest.raises(MixtureError, match=f"cannot hold {name}"):
                dtype_code(name)
        else:
            assert dtype_code(name) == code and np.dtype(DTYPE_CODES[code]).name == name
    for size, (core, bigscience) in golden["best_dtype"].items():
        assert token_dtype(None if size == "None" else int(size)).name == core == bigscience


documents_of_sequences = st.lists(st.lists(st.lists(st.integers(0, 65_535), max_size=5), max_size=3), max_size=8)


@settings(max_examples=60, deadline=None)
@given(documents_of_sequences, st.sampled_from(["uint16", "int32", "int64"]), st.integers(1, 4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, documents: Documents, dtype: str, block: int) -> None:
    prefix = tmp_path_factory.mktemp("round") / "x"
    write(prefix, documents, dtype, block)
    reader = IndexedReader(str(prefix))
    reader.check()
    found = [
        [reader[number].tolist() for number in range(start, end)]
        for start, end in zip(reader.document_index[:-1], reader.document_index[1:], strict=True)
    ]
    assert found == documents and reader.dtype.name == dtype
    assert reader.tokens.tolist() == [token for document in documents for sequence in document for token in sequence]


def test_a_reader_gives_views_and_survives_pickling(tmp_path: Path) -> None:
    write(tmp_path / "x", [[[5, 6, 7, 8]], [[9]]], "uint16")
    reader = IndexedReader(str(tmp_path / "x"))
    view = reader.get(0, 1, 2)
    assert view.tolist() == [6, 7] and np.shares_memory(view, reader.tokens) and not view.flags.writeable
    with pytest.raises(MixtureError, match="tokens 3 to 5 were asked of sequence 0, which has 4"):
        reader.get(0, 3, 2)
    packed = pickle.dumps(reader)
    assert len(packed) < 500 and pickle.loads(packed)[1].tolist() == [9]


def test_documents_by_default_are_sequences(tmp_path: Path) -> None:
    with indexed_writer(str(tmp_path / "x"), "uint16", commit_file) as writer:
        writer.append(np.array([1, 2, 3]), np.array([2, 0, 1]))
        assert (writer.sequences, writer.tokens) == (3, 3)
    assert IndexedReader(str(tmp_path / "x")).document_index.tolist() == [0, 1, 2, 3]


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), indexed_writer(str(tmp_path / "x"), "uint16", commit_file) as writer:
        writer.append(np.array([1]), np.array([1]))
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    for count in (10, 1_000_000):  # found when closing, and while writing
        with (
            pytest.raises(OSError, match="No space left"),
            IndexedWriter("/dev/full", str(tmp_path / "x.idx"), "uint16") as writer,
        ):
            writer.append(np.ones(count, np.int64), np.array([count]))
    assert not (tmp_path / "x.idx").exists()


def test_what_a_writer_refuses(tmp_path: Path) -> None:
    def append(tokens: list[int], lengths: list[int], counts: list[int] | None = None, dtype: str = "uint16") -> None:
        with IndexedWriter(str(tmp_path / "x.bin"), str(tmp_path / "x.idx"), dtype) as writer:
            writer.append(np.array(tokens), np.array(lengths), None if counts is None else np.array(counts))

    with pytest.raises(MixtureError, match=r"token id 65536 does not fit uint16"):
        append([65_536], [1])
    with pytest.raises(MixtureError, match="token id -1 does not fit uint16"):
        append([-1], [1])
    with pytest.raises(MixtureError, match="lengths of 2 tokens in all, but 3 tokens"):
        append([1, 2, 3], [2])
    with pytest.raises(MixtureError, match="sequence 1 has -1 tokens"):
        append([1, 2], [3, -1])
    with pytest.raises(MixtureError, match="sequence 0 has 2147483648 tokens; the limit is 2147483647"):
        append([1], [2**31])
    with pytest.raises(MixtureError, match="documents of 3 sequences in all, but 2"):
        append([1, 2], [1, 1], [3])
    with pytest.raises(MixtureError, match="cannot hold float32"):
        append([1], [1], dtype="float32")


def test_damaged_files(tmp_path: Path) -> None:
    write(tmp_path / "x", [[[5, 6, 7, 8]], [[9]]], "uint16")
    bin_path, idx_path = (Path(path) for path in paths(str(tmp_path / "x")))
    good_bin, good = bin_path.read_bytes(), idx_path.read_bytes()

    def broken(index: bytes = good, data: bytes = good_bin, check: bool = False) -> str:
        bin_path.write_bytes(data)
        idx_path.write_bytes(index)
        with pytest.raises(StorageError) as caught:
            reader = IndexedReader(str(tmp_path / "x"))
            assert check
            reader.check()
        return str(caught.value)

    assert "does not begin with MMIDIDX" in broken(b"TNTIDX\x00\x00" + good[8:])
    assert "does not begin with MMIDIDX" in broken(b"")
    assert "cut short inside its header (20 of 34 bytes)" in broken(good[:20])
    assert "its version is 2" in broken(good[:9] + struct.pack("<Q", 2) + good[17:])
    assert "its type code is 7" in broken(good[:17] + b"\x07" + good[18:])
    assert f"it has {len(good) - 1} bytes" in broken(good[:-1])
    assert f"it has {len(good) + 2} bytes" in broken(good + b"\0\0")
    assert "need 12884901946" in broken(good[:18] + struct.pack("<Q", 2**30) + good[26:])
    assert "it has 8 bytes, but its index describes 10" in broken(data=good_bin[:-2])
    assert "it has 0 bytes" in broken(data=b"")
    assert "lies at byte 6" in broken(good[:50] + struct.pack("<q", 6) + good[58:], data=good_bin[:-2], check=True)
    assert "document entries do not rise from 0 to 2" in broken(good[:-8] + struct.pack("<q", 1), check=True)
    assert "length -1" in broken(good[:34] + struct.pack("<i", -1) + good[38:], check=True)
    bin_path.unlink()
    with pytest.raises(StorageError, match="no such file"):
        IndexedReader(str(tmp_path / "x"))


def test_more_than_two_billion_tokens(tmp_path: Path) -> None:
    """A sparse file of 5 x 2^30 tokens: offsets beyond 2^31 tokens and 2^32 bytes."""
    lengths = np.full(5, 2**30, np.int32)
    prefix = str(tmp_path / "huge")
    write_index(f"{prefix}.idx", "uint16", lengths, np.arange(6))
    marks = {0: 11, 2**31: 12, 2**32 + 5: 13, 5 * 2**30 - 1: 14}
    with open(f"{prefix}.bin", "wb") as out:
        os.truncate(out.fileno(), 5 * 2**31)
        for place, mark in marks.items():
            out.seek(2 * place)
            out.write(struct.pack("<H", mark))
    reader = IndexedReader(prefix)
    reader.check()
    assert reader.offsets.tolist() == [number * 2**31 for number in range(5)]
    for place, mark in marks.items():
        sequence, start = divmod(place, 2**30)
        assert reader.get(sequence, start, 1).tolist() == [mark]


def test_more_documents_than_int32_holds(tmp_path: Path) -> None:
    """A sparse index of 2^31 + 3 sequences, the last two of which hold the only tokens."""
    count, prefix = 2**31 + 3, str(tmp_path / "many")
    with open(f"{prefix}.idx", "wb") as out:
        out.write(MAGIC + struct.pack("<QBQQ", 1, 4, count, count + 1))
        out.seek(HEADER_BYTES + 4 * (count - 2))
        out.write(np.array([2, 3], "<i4").tobytes())
        out.seek(HEADER_BYTES + 12 * count - 8)
        out.write(np.array([8], "<i8").tobytes())
        out.truncate(HEADER_BYTES + 12 * count + 8 * count)
        out.seek(0, os.SEEK_END)
        out.write(np.array([count], "<i8").tobytes())
    np.arange(5, dtype="<i4").tofile(f"{prefix}.bin")
    reader = IndexedReader(prefix)
    assert len(reader) == count and reader.document_index[-1] == count
    assert reader[count - 2].tolist() == [0, 1] and reader.get(count - 1, 1).tolist() == [3, 4]
    assert len(reader[2**31]) == 0
