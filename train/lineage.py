"""From a step of a run to the documents it was trained on, and from a document to the steps.

A step reads the samples behind its position; the mixture knows which documents a sample is read from, and the other
way round (`mixtures.lineage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mixtures.dataset import BlendedDataset
from mixtures.lineage import Horizon, find_documents, samples_of
from mixtures.lock import read_lock
from roots_pipeline.core.errors import RecipeError
from train.incidents import documents_of
from train.job import Job


def step_starts(job: Job) -> npt.NDArray[np.int64]:
    """The position at which each step begins, and behind the last one the position where the run ends."""
    batch, skips, found = job.config.batch_size(), job.skips, [0]
    while (after := skips.end_of(found[-1], batch(found[-1]))) <= job.config.train_samples:
        found.append(after)
    return np.array(found, np.int64)


def documents_of_step(job: Job, step: int) -> list[dict[str, Any]]:
    """The documents of a step (the first is 1), sample by sample; raises RecipeError if the run has no such step."""
    starts = step_starts(job)
    if not 1 <= step < len(starts):
        raise RecipeError(f"the run has no step {step}.", where="--step", hint=f"Use 1 to {len(starts) - 1}.")
    position = int(starts[step - 1])
    numbers = job.skips.numbers(position, job.config.batch_size()(position))
    config = job.config
    source = BlendedDataset(job.lock, "train", config.train_samples, sequence_length=config.sequence_length)
    return documents_of(source, numbers)


def steps_of_samples(job: Job, samples: Sequence[int]) -> list[int]:
    """The steps that read these samples; samples that are passed over, or lie behind the end, belong to none."""
    starts = step_starts(job)
    passed = {number for first, end in job.skips.ranges for number in samples if first <= number < end}
    own = [number for number in samples if number not in passed and number < starts[-1]]
    return sorted({int(np.searchsorted(starts, number, side="right")) for number in own})


def steps_of_document(job: Job, id: str) -> list[dict[str, Any]]:
    """For each place of a document in the mixture: group, samples and steps that read it; empty if it has none."""
    folder = str(job.run / "mixture")
    places = find_documents(read_lock(job.lock), folder, [id])
    horizon = Horizon(job.config.train_samples, job.config.sequence_length, "the run")
    return [
        {"id": place.id, "group": place.group, "side": place.side, "samples": found,
         "steps": steps_of_samples(job, found)}
        for place, found in zip(places, samples_of(places, folder, horizon), strict=True)
    ]  # fmt: skip
