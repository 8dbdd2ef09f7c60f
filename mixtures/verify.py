"""Look at every byte of a mixture: hashes, index, token range, document ends, split table, and a few samples.

In: a mixture folder, which is only read. Out: a report of what was looked at; the first thing that is wrong is
an error.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from mixtures.dataset import BlendedDataset
from mixtures.foreign import is_foreign
from mixtures.indexed import IndexedReader, IntArray
from mixtures.lock import NAME, Lock, check_files, check_inputs, read_lock
from mixtures.packed import Fill, training_fills
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import join
from tokenizer.encode import Encoder

_CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class Report:
    """What was verified, and `texts`: (group, sample, beginning of its text) of a few samples.

    `packed` is what one epoch of packed training samples holds, by group; empty if samples are read as a stream.
    """

    groups: int
    documents: int
    tokens: int
    texts: list[tuple[str, int, str]]
    packed: dict[str, Fill]


def verify_mixture(folder: str, tokenizer_path: str, *, corpus: str, tokenizer: str, samples: int = 5) -> Report:
    """Verify the mixture in `folder`, made from the corpus and tokenizer with these fingerprints.

    Raises StaleDataError or StorageError naming the file and the first thing in it that is wrong.
    """
    lock = read_lock(join(folder, NAME))
    listed = read_manifest(folder, made_by="python -m mixtures write").fingerprint
    if lock.fingerprint != listed:
        raise StaleDataError(
            f"the lock is not the one that the manifest describes ({lock.fingerprint[:12]} instead of {listed[:12]}).",
            where=join(folder, NAME), hint="Run `python -m mixtures write` again.",
        )  # fmt: skip
    check_inputs(lock, corpus=corpus, tokenizer=tokenizer)
    check_files(lock, folder, full=True)
    documents = tokens = 0
    for name in lock.groups:
        reader = verify_group(lock, name, folder)
        documents, tokens = documents + len(reader), tokens + len(reader.tokens)
    with tempfile.TemporaryDirectory() as cache:  # the mixture may lie where we cannot write
        packed = {} if lock.packing == "stream" else training_fills(lock, folder, lock.sequence_length, cache)
        texts = decode_samples(folder, tokenizer_path, samples, cache)
    return Report(len(lock.groups), documents, tokens, texts, packed)


def verify_group(lock: Lock, name: str, folder: str) -> IndexedReader:
    """Index, counts, token range and document ends of one group."""
    group = lock.groups[name]
    prefix = join(folder, group.file)
    reader = IndexedReader(prefix)
    reader.check()
    if (len(reader), len(reader.tokens)) != (group.documents, group.tokens):
        raise _wrong(
            prefix,
            f"it holds {len(reader)} documents and {len(reader.tokens)} tokens, "
            f"the lock says {group.documents} and {group.tokens}",
        )
    for start in range(0, len(reader.tokens), _CHUNK):
        block = reader.tokens[start : start + _CHUNK]
        if int(block.min()) < 0 or int(block.max()) >= lock.vocab_size:
            bad = start + int(np.argmax((block < 0) | (block >= lock.vocab_size)))
            raise _wrong(prefix, f"token {bad} is {int(reader.tokens[bad])}, the vocabulary has {lock.vocab_size}")
    wrong = np.flatnonzero(reader.lengths == 0)
    if not len(wrong) and len(reader):
        ends = reader.offsets // reader.dtype.itemsize + reader.lengths - 1
        wrong = np.flatnonzero(reader.tokens[ends] != lock.end_of_text)
    if len(wrong) and not is_foreign(prefix):
        raise _wrong(prefix, f"document {wrong[0]} does not end with token {lock.end_of_text}")
    table = pq.read_table(f"{prefix}.documents.parquet", columns=["sequence", "offset", "tokens"])
    expected: dict[str, IntArray] = {
        "sequence": np.arange(len(reader)),
        "offset": reader.offsets // reader.dtype.itemsize,
        "tokens": reader.lengths,
    }
    for column, wanted in expected.items():
        if not np.array_equal(table.column(column).to_numpy(), wanted):
            raise _wrong(f"{prefix}.documents.parquet", f"its column {column} does not describe the .idx file")
    return reader


def decode_samples(folder: str, tokenizer_path: str, samples: int, cache: str) -> list[tuple[str, int, str]]:
    """The beginnings of the first training samples as text; index arrays go to `cache`."""
    if samples < 1:
        return []
    decoder = Encoder.from_file(tokenizer_path)
    texts = []
    dataset = BlendedDataset(join(folder, NAME), "train", samples, cache=cache)
    for index in range(samples):
        group, number = dataset.location(index)
        real = sum(span.tokens for span in dataset.spans(index))  # behind them is padding
        texts.append((group, number, decoder.decode(dataset[index][:real], skip_special_tokens=False)))
    return texts


def _wrong(where: str, what: str) -> StaleDataError:
    return StaleDataError(f"{what}.", where=where, hint="Run `python -m mixtures write` again.")
