"""The step itself: corpus and tokenizer in, `.bin/.idx` of every group and mixture.lock.yaml out.

Order of work: write the files of all groups (`files`), count both sides of the split, turn the rule of the
recipe into weights, write the lock. A changed weight, seed, split or sequence length only rewrites the
lock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mixtures.cache import forget
from mixtures.config import MixtureRecipe
from mixtures.files import Inputs, read_inputs, write_files
from mixtures.foreign import adopt_groups
from mixtures.indexed import IndexedReader, token_dtype
from mixtures.join import file_name
from mixtures.lock import NAME, SUFFIXES, FileFacts, GroupFacts, Lock, write_lock
from mixtures.packed import training_fills
from mixtures.splits import SIDES, sequences_of
from roots_pipeline.core.errors import MixtureError, StorageError
from roots_pipeline.core.manifest import note_history, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import is_remote, join, lock_folder, sweep_temporaries
from roots_pipeline.core.tasks import Engine
from roots_pipeline.core.weight_rules import choose_weights
from roots_pipeline.core.weights import Unmatched


def write_mixture(recipe: MixtureRecipe, run: str, engine: Engine, progress: Progress) -> Lock:
    """Write or complete the mixture of a run and return its lock.

    Raises StaleDataError (corpus or tokenizer missing or changed), MixtureError (impossible weights or
    split), EmptyOutputError (a corpus without documents), StorageError.
    """
    folder = join(run, "mixture")
    if is_remote(folder):
        raise StorageError(
            "a mixture is mapped into memory, so it must lie on a local disk.",
            where=folder,
            hint="Choose a local --run folder and copy the result.",
        )
    started = time.time()
    with lock_folder(folder):
        sweep_temporaries(folder)
        inputs = read_inputs(run)
        _say_if_older(inputs, progress)
        groups = write_files(inputs, folder, engine, recipe.keep_pieces)
        groups |= adopt_groups(recipe.foreign, groups, folder, inputs.vocabulary.size)
        lock, unmatched = make_lock(recipe, inputs, groups, folder)
        _finish(lock, recipe, inputs, folder)
        forget(join(folder, "cache"), lambda arrays: _usable(arrays, lock))
        note_history(folder, started, step="mixture", groups=len(lock.groups))
    if unmatched.entries:
        progress.say(f"The corpus has nothing for {', '.join(unmatched.entries)}; the other weights are scaled up.")
    if unmatched.groups:
        progress.say(f"Left out, because no weight is given: {', '.join(unmatched.groups)}.")
    return lock


def _say_if_older(inputs: Inputs, progress: Progress) -> None:
    """A tokenizer of another corpus may be meant (one tokenizer for many mixtures), so it is only mentioned."""
    trained_on, found = inputs.tokenizer.inputs.get("corpus"), inputs.corpus.fingerprint
    if trained_on is not None and trained_on != found:
        progress.say(
            f"The tokenizer was trained on another corpus ({str(trained_on)[:12]}) than the one being encoded "
            f"({found[:12]}). If that is not meant, run `python -m tokenizer train` first."
        )


def make_lock(
    recipe: MixtureRecipe, inputs: Inputs, groups: Mapping[str, Mapping[str, Any]], folder: str
) -> tuple[Lock, Unmatched]:
    """Split, weights and files of all groups as one lock, and what the weights leave over.

    Raises MixtureError for what cannot be drawn.
    """
    split = recipe.split.model_dump(mode="json", exclude_defaults=True)
    sides = {name: _count_sides(split, recipe, join(folder, file_name(name))) for name in groups}
    train_tokens = {name: train[1] for name, (train, _) in sides.items()}
    weights, unmatched = choose_weights(recipe.weights, train_tokens)
    facts = {
        name: GroupFacts(
            file_name(name), weights[name], group["documents"], group["tokens"], *sides[name][0],
            *sides[name][1], {suffix: FileFacts(**group["files"][suffix]) for suffix in SUFFIXES},
        )
        for name, group in groups.items()
    }  # fmt: skip
    lock = Lock(
        corpus=inputs.corpus.fingerprint,
        tokenizer=inputs.tokenizer.fingerprint,
        vocab_size=inputs.vocabulary.size,
        end_of_text=inputs.vocabulary.end_of_text,
        dtype=token_dtype(inputs.vocabulary.size).name,
        sequence_length=recipe.sequence_length,
        seed=recipe.seed,
        variant=recipe.variant,
        split=split,
        groups=facts,
        packing=recipe.packing,
    )
    return lock, unmatched


def _usable(arrays: Mapping[str, Any], lock: Lock) -> bool:
    """Whether index arrays of the cache, by their inputs, can still be asked for under this lock."""
    if "weights" in arrays:
        return set(arrays["weights"]) <= {group.weight for group in lock.groups.values()}
    hashes = [(group.files[".idx"].xxh3, group.files[".documents.parquet"].xxh3) for group in lock.groups.values()]
    same = (arrays["lengths"], arrays["documents"]) in hashes and arrays.get("packing", "stream") == lock.packing
    return same and (arrays["split"], arrays["variant"]) == (lock.split, lock.variant)


def _count_sides(split: dict[str, Any], recipe: MixtureRecipe, prefix: str) -> list[tuple[int, int]]:
    """Documents and tokens for training and for validation."""
    reader = IndexedReader(prefix)
    sides = {side: sequences_of(split, side, prefix, len(reader), recipe.variant) for side in SIDES}
    for one, other in combinations(SIDES, 2):
        shared = np.intersect1d(sides[one], sides[other])
        if len(shared):
            raise MixtureError(
                f"{len(shared)} documents are both for {one} and for {other}, the first is number {shared[0]}.",
                where=prefix,
                hint=f"Let `{other}` begin where `{one}` ends.",
            )
    return [
        (len(sides[side]), int(np.sum(reader.lengths[sides[side]], dtype=np.int64))) for side in ("train", "validation")
    ]


def _finish(lock: Lock, recipe: MixtureRecipe, inputs: Inputs, folder: str) -> None:
    path, counts = join(folder, NAME), _counts(lock, folder)
    write_lock(path, lock)
    files = {
        group.file + suffix: {"size": facts.size, "xxh3": facts.xxh3}
        for group in lock.groups.values()
        for suffix, facts in group.files.items()
    }
    write_manifest(
        folder,
        "mixture",
        config=recipe.model_dump(mode="json"),
        inputs={"corpus": inputs.corpus.fingerprint, "tokenizer": inputs.tokenizer.fingerprint},
        counts=counts,
        fingerprint=lock.fingerprint,
        seeds={"order": lock.seed},
        files=files,
    )


def _counts(lock: Lock, folder: str) -> dict[str, dict[str, int]]:
    """What the manifest says of each group; of packed samples also what one epoch is, for readers without the files."""
    counts = {name: {"documents": group.documents, "tokens": group.tokens} for name, group in lock.groups.items()}
    if lock.packing != "stream":
        for name, fill in training_fills(lock, folder, lock.sequence_length).items():
            counts[name] |= {"packed_samples": fill.samples, "packed_tokens": fill.tokens}
    return counts
