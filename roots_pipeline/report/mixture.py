"""RUN/mixture as facts: the lock says what each group holds and weighs, the manifest which rule chose the weights."""

from __future__ import annotations

from typing import Any

import yaml

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import join, open_read
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
    rows = [
        MixtureRow(
            str(name), int(group["documents"]), int(group["tokens"]), int(group["train_tokens"]),
            int(group["validation_tokens"]), float(group["weight"]),
            budget * float(group["weight"]) / int(group["train_tokens"]) if group["train_tokens"] else 0.0,
        )
        for name, group in groups.items()
    ]
    rows.sort(key=lambda row: (-row.weight, row.group))
    weights = manifest.config.get("weights") or {}
    settings = ", ".join(f"{key} {value}" for key, value in weights.items()
                         if key != "rule" and isinstance(value, str | int | float))
    rule = str(weights.get("rule", "unknown"))
    return Mixture(
        int(lock["sequence_length"]), f"{rule} ({settings})" if settings else rule, len(rows),
        sum(row.tokens for row in rows), budget, trained_tokens is not None, tuple(rows[:TABLE_ROWS]),
    )


def _read_lock(path: str) -> dict[str, Any]:
    with open_read(path) as handle:
        content = handle.read()
    try:
        lock = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StaleDataError("this is not valid YAML.", where=path, hint=f"Run `{COMMAND}` again.") from error
    if not isinstance(lock, dict) or lock.get("format") != _FORMAT:
        found = lock.get("format") if isinstance(lock, dict) else type(lock).__name__
        raise StaleDataError(
            f"the lock has format {found}, this version reads format {_FORMAT}.", where=path,
            hint=f"Use the version of rootbloom that wrote it, or run `{COMMAND}` again.",
        )
    return lock
