"""A mixture on disk from token lists, for tests that need no tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mixtures.join import PIECE_SCHEMA, file_name, write_group
from mixtures.lock import NAME, FileFacts, GroupFacts, Lock, write_lock
from mixtures.splits import SIDES, sequences_of
from roots_pipeline.core.tasks import Commit

HASH = {"method": "hash", "share": 0.2}


def write_pieces(path: Path, batches: list[list[list[int]]], first: int = 0) -> None:
    """An Arrow file of pieces, as `encode_shard` writes it; documents are called d0, d1, ..."""
    number = first
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, PIECE_SCHEMA) as writer:
        for documents in batches:
            ids = [f"d{number + place}" for place in range(len(documents))]
            number += len(documents)
            writer.write_batch(pa.RecordBatch.from_pydict({"id": ids, "tokens": documents}, PIECE_SCHEMA))


def build_mixture(
    folder: Path,
    groups: dict[str, list[list[int]]],
    weights: dict[str, float] | None = None,
    split: dict[str, Any] = HASH,
    **settings: Any,
) -> str:
    """Write files and lock of a mixture of these groups (each a list of documents); returns the path of the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {}
    for name, documents in groups.items():
        pieces, prefix = folder / "pieces.arrow", f"{folder}/{file_name(name)}"
        write_pieces(pieces, [documents[:2], documents[2:]])
        written = write_group(Commit(), pieces=[(str(pieces), [0, 1])], prefix=prefix, dtype="uint16")
        lengths = np.array([len(document) for document in documents])
        sides = [sequences_of(split, side, prefix, len(documents), "bigscience") for side in SIDES]
        counts = [count for side in sides for count in (len(side), int(lengths[side].sum()))]
        weight = 1 / len(groups) if weights is None else weights[name]
        files = {suffix: FileFacts(**entry) for suffix, entry in written["files"].items()}
        facts[name] = GroupFacts(
            file_name(name), weight, written["documents"], written["tokens"],
            counts[0], counts[1], counts[2], counts[3], files,
        )  # fmt: skip
        pieces.unlink()
    given: dict[str, Any] = {
        "corpus": "c0ffee", "tokenizer": "7ea", "vocab_size": 60_000, "end_of_text": 2, "dtype": "uint16",
        "sequence_length": 8, "seed": 42, "variant": "bigscience", "split": split, **settings,
    }  # fmt: skip
    path = str(folder / NAME)
    write_lock(path, Lock(groups=facts, **given))
    return path


def numbered_groups(sizes: dict[str, list[int]]) -> dict[str, list[list[int]]]:
    """Groups of documents of these lengths in which every token is different and above 2."""
    number = 3
    groups: dict[str, list[list[int]]] = {}
    for name, lengths in sizes.items():
        groups[name] = []
        for length in lengths:
            groups[name].append([*range(number, number + length)])
            number += length
    assert number < 60_000
    return groups
