"""Megatron's `.bin/.idx` pair: token ids without a header, and an index that says where each sequence lies.

Why: every Megatron-style trainer reads this format, so our files must be theirs byte for byte.
`IndexedWriter` takes arrays of token ids and lengths and streams them; `IndexedReader` maps both files and
returns views, so a file larger than memory costs nothing to open. Layout of `.idx` (little-endian, no
padding, hence unaligned):

    MMIDIDX 00 00 | u64 version = 1 | u8 dtype code | u64 N sequences | u64 D+1 for D documents
    int32 lengths in tokens [N] | int64 offsets in bytes [N] | int64 first sequence of each document [D+1]
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.errors import MixtureError, StorageError

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER_BYTES = 34
# Codes 6 and 7 are floats, and two published programs disagree on which: no token file can hold them.
DTYPE_CODES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
UINT16_BELOW = 65_500
MAX_LENGTH = 2**31 - 1
_CHUNK = 1 << 22

IntArray = npt.NDArray[np.integer[Any]]


def token_dtype(vocab_size: int | None) -> np.dtype[Any]:
    """What Megatron stores ids of this vocabulary in: uint16 below 65,500 tokens, else int32."""
    return np.dtype("<u2" if vocab_size is not None and vocab_size < UINT16_BELOW else "<i4")


def dtype_code(dtype: npt.DTypeLike) -> int:
    """The code byte of a token dtype. Raises MixtureError for types the format cannot name."""
    wanted = np.dtype(dtype)
    for code, name in DTYPE_CODES.items():
        if np.dtype(name) == wanted:
            return code
    raise MixtureError(f"token files cannot hold {wanted}.", hint="Use uint16 or int32.")


def paths(prefix: str) -> tuple[str, str]:
    """`(prefix.bin, prefix.idx)`."""
    return f"{prefix}.bin", f"{prefix}.idx"


def write_index(path: str, dtype: npt.DTypeLike, lengths: IntArray, document_index: IntArray) -> None:
    """Write an `.idx` file: `lengths` in tokens [N], `document_index` [D+1] from 0 to N."""
    with open(path, "wb") as out:
        out.write(MAGIC + struct.pack("<QBQQ", VERSION, dtype_code(dtype), len(lengths), len(document_index)))
        _write_chunks(out, lengths, "<i4")
        for offsets in _offsets(lengths, np.dtype(dtype).itemsize):
            out.write(offsets.astype("<i8", copy=False).data)
        _write_chunks(out, document_index, "<i8")


def _write_chunks(out: BinaryIO, values: IntArray, dtype: str) -> None:
    for start in range(0, len(values), _CHUNK):
        out.write(np.ascontiguousarray(values[start : start + _CHUNK], dtype).data)


def _offsets(lengths: IntArray, item_bytes: int) -> Iterator[npt.NDArray[np.int64]]:
    """Byte offset of each sequence, in blocks, for sequences that lie end to end."""
    base = 0
    for start in range(0, len(lengths), _CHUNK):
        ends = base + np.cumsum(lengths[start : start + _CHUNK], dtype=np.int64) * item_bytes
        yield np.concatenate([np.array([base], np.int64), ends[:-1]])
        base = int(ends[-1])


class IndexedWriter:
    """Streams sequences into a `.bin` file and writes its `.idx` when closed without an error.

    Memory: 8 bytes a sequence (its length and its document), nothing for the tokens. Both paths are written
    directly; `indexed_writer` makes the pair atomic.
    """

    def __init__(self, bin_path: str, idx_path: str, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        dtype_code(self.dtype)
        self._idx_path = idx_path
        self._lengths, self._per_document = array("i"), array("i")
        self.tokens = 0
        self._out = open(bin_path, "wb", buffering=1 << 20)  # noqa: SIM115 (closed by __exit__)

    @property
    def sequences(self) -> int:
        """Sequences written so far."""
        return len(self._lengths)

    def append(self, tokens: IntArray, lengths: IntArray, sequences_per_document: IntArray | None = None) -> None:
        """Append `len(lengths)` sequences whose ids lie end to end in `tokens`.

        `sequences_per_document` groups them into documents (zeros make empty documents); by default each
        sequence is a document. Raises MixtureError if the numbers disagree, or an id or a length does not
        fit the format.
        """
        if len(lengths) and (int(lengths.min()) < 0 or int(lengths.max()) > MAX_LENGTH):
            bad = int(np.argmax((lengths < 0) | (lengths > MAX_LENGTH)))
            raise MixtureError(
                f"sequence {self.sequences + bad} has {int(lengths[bad])} tokens; the limit is {MAX_LENGTH}.",
                where=self._idx_path,
                hint="Split such a document before encoding.",
            )
        if int(np.sum(lengths, dtype=np.int64)) != len(tokens):
            raise MixtureError(
                f"lengths of {int(np.sum(lengths, dtype=np.int64))} tokens in all, but {len(tokens)} tokens.",
                where=self._idx_path,
            )
        if sequences_per_document is None:
            sequences_per_document = np.ones(len(lengths), np.int32)
        elif int(np.sum(sequences_per_document, dtype=np.int64)) != len(lengths):
            raise MixtureError(
                f"documents of {int(np.sum(sequences_per_document))} sequences in all, but {len(lengths)}.",
                where=self._idx_path,
            )
        for start in range(0, len(tokens), _CHUNK):
            self._write(tokens[start : start + _CHUNK])
        self._lengths.frombytes(lengths.astype(np.int32).tobytes())
        self._per_document.frombytes(sequences_per_document.astype(np.int32).tobytes())
        self.tokens += len(tokens)

    def merge(self, other: IndexedReader) -> None:
        """Append all sequences and documents of another pair."""
        self.append(other.tokens, other.lengths, np.diff(other.document_index))

    def _write(self, ids: IntArray) -> None:
        limits = np.iinfo(self.dtype)
        low, high = int(ids.min()), int(ids.max())
        if low < limits.min or high > limits.max:
            value = high if high > limits.max else low
            raise MixtureError(
                f"token id {value} does not fit {self.dtype.name} ({limits.min} to {limits.max}).",
                where=self._idx_path,
                hint="The type was chosen for a smaller vocabulary; check the tokenizer.",
            )
        self._out.write(np.ascontiguousarray(ids, self.dtype).data)

    def __enter__(self) -> IndexedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()
        if kind is None:
            ends = np.cumsum(np.frombuffer(self._per_document, np.int32), dtype=np.int64)
            document_index = np.concatenate([np.zeros(1, np.int64), ends])
            write_index(self._idx_path, self.dtype, np.frombuffer(self._lengths, np.int32), document_index)


@contextmanager
def indexed_writer(
    prefix: str, dtype: npt.DTypeLike, file: Callable[[str], AbstractContextManager[str]]
) -> Iterator[IndexedWriter]:
    """A writer whose two files appear whole or not at all; `file(path)` is `Commit.file` or `commit_file`.

    `.bin` appears first: an `.idx` without its `.bin` never exists.
    """
    bin_path, idx_path = paths(prefix)
    with (
        file(idx_path) as temporary_idx,
        file(bin_path) as temporary_bin,
        IndexedWriter(temporary_bin, temporary_idx, dtype) as writer,
    ):
        yield writer


class IndexedReader:
    """A mapped `.bin/.idx` pair; `reader[i]` is a view of sequence i (read-only, no copy).

    `tokens` all ids [T]; `lengths` int32 [N] in tokens; `offsets` int64 [N] in bytes; `document_index` int64
    [D+1]. Opening costs no pass over the data. Raises StorageError, naming the field, if the files are not
    such a pair or are cut short; `check` looks at every entry.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.bin_path, self.idx_path = paths(prefix)
        index = _map(self.idx_path)
        self.dtype, sequences, entries = self._read_header(index)
        widths = (4 * sequences, 8 * sequences, 8 * entries)
        if len(index) != HEADER_BYTES + sum(widths):
            raise self._broken(
                f"it has {len(index)} bytes, but {sequences} sequences and {entries} document entries need "
                f"{HEADER_BYTES + sum(widths)}"
            )
        parts = np.split(index[HEADER_BYTES:], np.cumsum(widths)[:2])
        self.lengths: npt.NDArray[np.int32] = parts[0].view("<i4")
        self.offsets: npt.NDArray[np.int64] = parts[1].view("<i8")
        self.document_index: npt.NDArray[np.int64] = parts[2].view("<i8")
        data = _map(self.bin_path)
        expected = int(self.offsets[-1]) + int(self.lengths[-1]) * self.dtype.itemsize if sequences else 0
        if len(data) != expected:
            raise StorageError(
                f"it has {len(data)} bytes, but its index describes {expected}.",
                where=self.bin_path,
                hint="One of the two files is cut short or belongs to another run; write the mixture again.",
            )
        self.tokens: IntArray = data.view(self.dtype)

    def _read_header(self, index: npt.NDArray[np.uint8]) -> tuple[np.dtype[Any], int, int]:
        head = index[:HEADER_BYTES].tobytes()
        if head[: len(MAGIC)] != MAGIC:
            raise self._broken("it does not begin with MMIDIDX, so it is not a Megatron index")
        if len(head) < HEADER_BYTES:
            raise self._broken(f"it is cut short inside its header ({len(head)} of {HEADER_BYTES} bytes)")
        version, code, sequences, entries = struct.unpack("<QBQQ", head[len(MAGIC) :])
        if version != VERSION:
            raise self._broken(f"its version is {version}, this program reads version {VERSION}")
        if code not in DTYPE_CODES:
            raise self._broken(f"its type code is {code}; token ids have one of {sorted(DTYPE_CODES)}")
        return np.dtype(DTYPE_CODES[code]), sequences, entries

    def _broken(self, what: str) -> StorageError:
        return StorageError(f"{what}.", where=self.idx_path, hint="Write it again, or check the path.")

    def check(self) -> None:
        """Look at every entry of the index. Raises StorageError naming the first sequence that is wrong."""
        wrong = np.flatnonzero(self.lengths < 0)
        if len(wrong):
            raise self._broken(f"sequence {wrong[0]} has the length {int(self.lengths[wrong[0]])}")
        first = 0
        for starts in _offsets(self.lengths, self.dtype.itemsize):
            stored = self.offsets[first : first + len(starts)]
            wrong = np.flatnonzero(starts != stored)
            if len(wrong):
                raise self._broken(
                    f"sequence {first + wrong[0]} lies at byte {int(stored[wrong[0]])}, but the lengths "
                    f"before it end at byte {int(starts[wrong[0]])}"
                )
            first += len(starts)
        entries = self.document_index
        if not len(entries) or entries[0] != 0 or entries[-1] != len(self) or np.any(np.diff(entries) < 0):
            raise self._broken(f"its document entries do not rise from 0 to {len(self)}")

    def get(self, sequence: int, start: int = 0, length: int | None = None) -> IntArray:
        """View of `length` tokens (default: all that follow) of a sequence from token `start` on."""
        first = int(self.offsets[sequence]) // self.dtype.itemsize
        size = int(self.lengths[sequence])
        end = size if length is None else start + length
        if not 0 <= start <= end <= size:
            raise MixtureError(
                f"tokens {start} to {end} were asked of sequence {sequence}, which has {size}.",
                where=self.bin_path,
            )
        return self.tokens[first + start : first + end]

    def __getitem__(self, sequence: int) -> IntArray:
        return self.get(sequence)

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    def __reduce__(self) -> tuple[type[IndexedReader], tuple[str]]:
        # A worker process maps the files again instead of receiving their content.
        return IndexedReader, (self.prefix,)


def _map(path: str) -> npt.NDArray[np.uint8]:
    try:
        if os.path.getsize(path) == 0:
            return np.empty(0, np.uint8)
        return np.asarray(np.memmap(path, np.uint8, "r"))
    except FileNotFoundError as error:
        raise StorageError("there is no such file.", where=path, hint="Check the path.") from error
