"""The signature of each text as a working column, and the columns in which the rounds of MinHash keep what they found.

The map runs in the first pass over the text. Its columns begin with `_`: they are no part of the corpus. Their names
follow from the settings, so two stages with different n-grams do not get in each other's way.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import Map
from roots_pipeline.core.storage import fingerprint
from roots_pipeline.dedup.row_lists import empty_lists
from roots_pipeline.dedup.survivors import EDGES
from roots_pipeline.text.minhash import Signatures, band_keys, sign_texts
from roots_pipeline.text.ngrams import CHARACTERS, WORDS, Ngrams, ngrams_of

# Names of buckets (sets of documents that share a band) that a document is in.
BUCKETS = pa.schema([pa.field("bucket", pa.uint64())])
# Pairs whose sets of n-grams must be compared: the better document (which has the pair in its list, too), and which of
# the groups that its many partners are cut into.
CHECKS = pa.schema([pa.field("shard", pa.int32()), pa.field("row", pa.int64()), pa.field("part", pa.int32())])


@dataclass(frozen=True, slots=True)
class SignatureSettings:
    """What decides a signature; the fields are explained in `minhash.MinHashDuplicates`."""

    unit: str
    ngram: int
    lower_case: bool
    short: str
    hashes: int
    seed: int

    @property
    def ngrams(self) -> Ngrams:
        return ngrams_of(WORDS if self.unit == "words" else CHARACTERS, self.ngram, self.lower_case)

    @property
    def short_whole(self) -> bool:
        return self.short == "whole"

    @property
    def column(self) -> str:
        return self._named("signature")

    @property
    def buckets(self) -> str:
        return self._named("buckets")

    @property
    def checks(self) -> str:
        return self._named("checks")

    @property
    def edges(self) -> str:
        return self._named("edges")

    def _named(self, what: str) -> str:
        return f"_minhash_{what}_{_mark(self)}"


@lru_cache(maxsize=64)
def _mark(settings: SignatureSettings) -> str:
    return fingerprint(astuple(settings))[:8]


@dataclass(frozen=True, slots=True)
class MinHashSignature(Map):
    """Adds the MinHash signature of each text (null if it has no n-gram) and empty columns for the rounds to come."""

    name: ClassVar[str] = "minhash_signature"
    settings: SignatureSettings

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        own = self.settings
        return (own.column, own.buckets, own.checks, own.edges)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        own, length = self.settings, batch.num_rows
        data, offsets = text_buffers(batch.column("text"))
        signatures, signed = sign_texts(data, offsets, own.ngrams, own.hashes, own.seed, own.short_whole)
        return with_columns(batch, {
            own.column: _as_column(signatures, signed), own.buckets: empty_lists(BUCKETS, length),
            own.checks: empty_lists(CHECKS, length), own.edges: empty_lists(EDGES, length),
        })


def _as_column(signatures: Signatures, signed: npt.NDArray[np.bool_]) -> pa.Array:
    kind = pa.binary(4 * signatures.shape[1])
    valid = pa.py_buffer(np.packbits(signed, bitorder="little"))
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(signatures), [valid, pa.py_buffer(signatures)])


def signatures_of(column: pa.Array | pa.ChunkedArray, hashes: int) -> Signatures:
    """uint32[rows, hashes] of a signature column without nulls."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values = np.frombuffer(column.buffers()[1] or b"", np.uint32)
    return values[column.offset * hashes : (column.offset + len(column)) * hashes].reshape(-1, hashes)


def band_entries(
    column: pa.Array, taking: npt.NDArray[np.bool_], settings: SignatureSettings, bands: int, rows: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The keys of all bands of the documents that take part and have a signature, and the row of each key."""
    own = np.flatnonzero(taking & column.is_valid().to_numpy(zero_copy_only=False))
    keys = band_keys(signatures_of(column.take(pa.array(own)), settings.hashes), bands, rows)
    return keys.ravel(), np.repeat(own, bands)
