"""Where a document went: the span of its tokens in which `.bin`, and the samples that hold it.

    python -m mixtures explain ID --run RUN

In: a finished mixture and ids of documents. Out: a `Place` for every document found, and for each the numbers of
the training samples that read at least one of its tokens. Which samples there are depends on how
many are asked for: by default as many as the finished model of the run was trained on, without a model one pass
over the training tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.dataset import BlendedDataset
from mixtures.indexed import IndexedReader
from mixtures.lock import NAME, Lock, check_group
from mixtures.packed import training_fills
from mixtures.splits import SIDES, sequences_of
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import join


@dataclass(frozen=True, slots=True)
class Place:
    """A document in a mixture: `tokens` tokens of `<file>.bin` from token `offset` on (its end of text included).

    `side` is the side of the split that reads it, null for none.
    """

    id: str
    group: str
    file: str
    sequence: int
    offset: int
    tokens: int
    side: str | None


@dataclass(frozen=True, slots=True)
class Horizon:
    """How many samples of which length are looked at, and why these."""

    samples: int
    sequence_length: int
    reason: str


def find_documents(
    lock: Lock, folder: str, ids: Iterable[str], groups: Iterable[str] | None = None
) -> list[Place]:
    """Every document with one of these ids in the mixture or in some groups of it, in the order of groups and files."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    found = []
    for name in lock.groups if groups is None else groups:
        group = lock.groups[name]
        prefix = join(folder, group.file)
        with pq.ParquetFile(f"{prefix}.documents.parquet") as file:
            rows = [
                row
                for number in range(file.num_row_groups)
                for row in _matching(file.read_row_group(number, use_threads=False), wanted)
            ]
        if rows:
            check_group(group, folder)
            sides = _sides(lock, prefix)
            found += [
                Place(id, name, group.file, sequence, offset, tokens, sides(sequence))
                for id, sequence, offset, tokens in rows
            ]
    return found


def _matching(table: pa.Table, wanted: pa.Array) -> list[tuple[str, int, int, int]]:
    rows = table.filter(pc.is_in(table.column("id"), wanted))
    return [(row["id"], row["sequence"], row["offset"], row["tokens"]) for row in rows.to_pylist()]


def _sides(lock: Lock, prefix: str) -> Callable[[int], str | None]:
    """Tells on which side of the split a sequence of a group is."""
    sequences = len(IndexedReader(prefix))
    members = {side: set(sequences_of(lock.split, side, prefix, sequences, lock.variant).tolist()) for side in SIDES}
    return lambda sequence: next((side for side in SIDES if sequence in members[side]), None)


def horizon_of(lock: Lock, run: str, samples: int | None = None, sequence_length: int | None = None) -> Horizon:
    """What to look at: what is asked for, else what the run's finished model read, else one pass over the tokens."""
    length = sequence_length or lock.sequence_length
    if samples is not None:
        return Horizon(samples, length, "as asked for")
    try:
        model = read_manifest(join(run, "model"))
        if sequence_length is None and model.inputs.get("mixture") == lock.fingerprint:
            read = int(model.config["train_samples"]), int(model.config["sequence_length"])
            return Horizon(*read, "what the model was trained on")
    except StaleDataError:
        pass  # nothing trained yet
    if lock.packing == "stream":
        one_pass = sum(group.train_tokens for group in lock.groups.values() if group.weight > 0) // length
    else:
        one_pass = sum(fill.samples for fill in training_fills(lock, join(run, "mixture"), length).values())
    return Horizon(max(1, one_pass), length, "one pass over the training tokens")


def samples_of(places: Sequence[Place], folder: str, horizon: Horizon, cache: str | None = None) -> list[list[int]]:
    """For each place the numbers of the training samples that read at least one of its tokens."""
    if not any(place.side == "train" for place in places):
        return [[] for _ in places]
    dataset = BlendedDataset(
        join(folder, NAME), "train", horizon.samples, sequence_length=horizon.sequence_length, cache=cache
    )
    return [
        dataset.containing(place.group, [place.sequence]).tolist() if place.side == "train" else []
        for place in places
    ]  # fmt: skip


def shortened(numbers: Sequence[int], shown: int = 12) -> str:
    """Numbers as people read them: the first few, and how many more."""
    more = f" and {len(numbers) - shown} more" if len(numbers) > shown else ""
    return ", ".join(map(str, numbers[:shown])) + more if numbers else "none"
