"""RUN/mixture as facts: the lock says what each group holds and weighs, the manifest which rule chose the weights.

Epochs are those of `python -m mixtures plan`. A packed sample holds fewer tokens than a full one; how many on average
is in the manifest (versions before did not note it: then epochs are unknown).
"""

from __future__ import annotations

from typing import Any

import yaml

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import join, open_read
from roots_pipeline.core.yaml_hints import parse_yaml
from roots_pipeline.report.facts import Mixture, MixtureRow
from roots_pipeline.report.reading import TABLE_ROWS

COMMAND = "python -m mixtures write"
_LOCK = "mixture.lock.yaml"
_FORMAT = 1


def collect_mixture(folder: str, manifest: Manifest, trained_tokens: int | None) -> Mixture:
    """The groups of the lock. Epochs refer to the tokens that training read, else to as many as the mixture holds."""
    lock = _read_lock(join(folder, _LOCK))
    groups: dict[str, dict[str, Any]] = lock["groups"]
    held = sum(int(group["train_tokens"]) for group in groups.values())
    budget = held if trained_tokens is None else trained_tokens
    packed, length = lock.get("packing", "stream") != "stream", int(lock["sequence_length"])
    rows = []
    for name, group in groups.items():
        weight, tokens = float(group["weight"]), int(group["train_tokens"])
        full = _share_of_a_sample(manifest.counts.get(str(name), {}), length) if packed and weight else 1.0
        epochs = None if full is None else budget * weight * full / tokens if tokens else 0.0
        rows.append(MixtureRow(
            str(name), int(group["documents"]), int(group["tokens"]), tokens, int(group["validation_tokens"]), weight,
            epochs,
        ))
    rows.sort(key=lambda row: (-row.weight, row.group))
    weights = manifest.config.get("weights") or {}
    settings = ", ".join(f"{key} {value}" for key, value in weights.items()
                         if key != "rule" and isinstance(value, str | int | float))
    rule = str(weights.get("rule", "unknown"))
    return Mixture(
        length, f"{rule} ({settings})" if settings else rule, len(rows),
        sum(row.tokens for row in rows), budget, trained_tokens is not None, tuple(rows[:TABLE_ROWS]), packed,
    )


def _share_of_a_sample(counts: dict[str, Any], length: int) -> float | None:
    """Real tokens of an average packed sample, as a share of the `length` that a trainer counts for it."""
    if "packed_samples" not in counts:
        return None
    return int(counts["packed_tokens"]) / int(counts["packed_samples"]) / length


def _read_lock(path: str) -> dict[str, Any]:
    with open_read(path) as handle:
        content = handle.read()
    try:
        lock = parse_yaml(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StaleDataError("this is not valid YAML.", where=path, hint=f"Run `{COMMAND}` again.") from error
    if not isinstance(lock, dict) or lock.get("format") != _FORMAT:
        found = lock.get("format") if isinstance(lock, dict) else type(lock).__name__
        raise StaleDataError(
            f"the lock has format {found}, this version reads format {_FORMAT}.", where=path,
            hint=f"Use the version of rootbloom that wrote it, or run `{COMMAND}` again.",
        )
    return lock
