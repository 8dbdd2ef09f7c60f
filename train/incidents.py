"""What a run notes when a step goes wrong: RUN/model/incidents/step_*.json names the samples and the documents.

Also RUN/model/skipped.json: the ranges of samples that roll-backs have passed over, which belong to the run's identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from mixtures.dataset import BlendedDataset
from roots_pipeline.core.storage import read_json, write_json
from train.data import SampleSource
from train.skips import Skips

_SHOWN = 3


def documents_of(source: SampleSource, samples: Sequence[int] | npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """The documents that samples are read from, in order: sample, group, id, first token in the document, tokens.

    Empty for samples that come from no mixture.
    """
    if not isinstance(source, BlendedDataset):
        return []
    found: list[dict[str, Any]] = []
    for sample in samples:
        group, _ = source.location(int(sample))
        found += [
            {"sample": int(sample), "group": group, "sequence": span.sequence, "start": span.start,
             "tokens": span.tokens}
            for span in source.spans(int(sample))
        ]  # fmt: skip
    prefixes = dict(zip(source.names, (samples.reader.prefix for samples in source.groups), strict=True))
    for group in {one["group"] for one in found}:
        table = pq.read_table(f"{prefixes[group]}.documents.parquet", columns=["id", "sequence"])
        names = dict(zip(table["sequence"].to_pylist(), table["id"].to_pylist(), strict=True))
        for one in found:
            if one["group"] == group:
                one["id"] = names[one.pop("sequence")]
    return found


def note_incident(
    model: Path, step: int, reason: str, samples: npt.NDArray[np.int64], documents: list[dict[str, Any]]
) -> Path:
    """Write what happened in a step; returns the file."""
    path = model / "incidents" / f"step_{step:08d}.json"
    value = {
        "step": step,
        "reason": reason,
        "first_sample": int(samples[0]),
        "last_sample": int(samples[-1]),
        "documents": documents,
    }
    write_json(str(path), value)
    return path


def names(documents: list[dict[str, Any]]) -> str:
    """A few documents by name, for a sentence."""
    ids = list(dict.fromkeys(f"{one['group']}:{one['id']}" for one in documents))
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more


def rolled_back(model: Path) -> list[dict[str, Any]]:
    """Roll-backs of this run so far, oldest first: first, end, step and reason of each."""
    path = model / "skipped.json"
    return list(read_json(str(path))) if path.is_file() else []


def note_roll_back(model: Path, entry: dict[str, Any]) -> None:
    """Add one to `rolled_back`."""
    write_json(str(model / "skipped.json"), [*rolled_back(model), entry])


def all_skips(model: Path, recipe: Skips) -> Skips:
    """The samples that this run passes over: those of the recipe, and those of its roll-backs."""
    return Skips.of([*recipe.ranges, *((entry["first"], entry["end"]) for entry in rolled_back(model))])
