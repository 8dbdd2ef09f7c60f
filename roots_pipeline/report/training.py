"""RUN/model as facts: the curves of log.jsonl, thinned while they are read, and the text the model wrote.

A log has one JSON object a line: a step with its loss, learning rate and speed, or a validation loss with the entropy
of the same tokens. It may still be growing, so a last line that is cut short is left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import exists, join, open_read, read_json
from roots_pipeline.report.facts import Curve, Incident, Sample, Training
from roots_pipeline.report.reading import optional_number

COMMAND = "python -m train run"
CURVES = ("loss", "validation_loss", "learning_rate", "tokens_per_second", "gradient_norm", "share_of_matmul_peak")
_POINTS = 300
_INCIDENTS = 20


def collect_training(folder: str, manifest: Manifest | None, vocab_size: int | None) -> Training:
    """Everything the page says about RUN/model; `manifest` is None while training has not finished."""
    thinned: defaultdict[str, _Thinned] = defaultdict(_Thinned)
    steps = samples = incidents = 0
    first: list[Incident] = []
    entropy = None
    for line in _lines(join(folder, "log.jsonl")):
        steps, samples = max(steps, int(line["step"])), max(samples, int(line["samples"]))
        if "incident" in line:
            incidents += 1
            if incidents <= _INCIDENTS:
                first.append(Incident(int(line["step"]), str(line["incident"])))
        for name in CURVES:
            if (value := optional_number(line, name)) is not None and math.isfinite(value):
                thinned[name].add(float(line["step"]), value)
        entropy = optional_number(line, "unigram_entropy") if "unigram_entropy" in line else entropy
    counts: dict[str, Any] = manifest.counts if manifest else {}
    return Training(
        steps=steps, samples=samples, tokens=counts.get("tokens"), parameters=counts.get("parameters"),
        curves={name: curve.curve() for name, curve in thinned.items()}, unigram_entropy=entropy,
        uniform_loss=math.log(vocab_size) if vocab_size else None, sample=_sample(join(folder, "generated.json")),
        incidents=incidents, first_incidents=tuple(first),
    )


def _lines(path: str) -> Iterator[dict[str, Any]]:
    with open_read(path) as log:
        for number, line in enumerate(log, 1):
            if not line.endswith(b"\n"):
                return
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                value = None
            if not isinstance(value, dict):
                raise StaleDataError("this line is no JSON object.", where=f"{path}:{number}",
                                     hint=f"Delete the line, or the file and run `{COMMAND}` again.")
            yield value


def _sample(path: str) -> Sample | None:
    if not exists(path):
        return None
    value = read_json(path)
    return Sample(str(value["prompt"]), str(value["text"]))


@dataclass(slots=True)
class _Bucket:
    steps: float
    total: float
    low: float
    high: float
    number: int

    def take(self, other: _Bucket) -> None:
        self.steps += other.steps
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.number += other.number


class _Thinned:
    """A curve of any length in bounded memory: when there are too many points, neighbours are joined in pairs."""

    def __init__(self) -> None:
        self._buckets: list[_Bucket] = []
        self._size = 1  # points that a full bucket holds
        self._last = math.nan

    def add(self, step: float, value: float) -> None:
        """The next point."""
        self._last = value
        point = _Bucket(step, value, value, value, 1)
        if self._buckets and self._buckets[-1].number < self._size:
            self._buckets[-1].take(point)
            return
        if len(self._buckets) >= 2 * _POINTS:
            for left, right in zip(self._buckets[::2], self._buckets[1::2], strict=True):
                left.take(right)
            self._buckets = self._buckets[::2]
            self._size *= 2
        self._buckets.append(point)

    def curve(self) -> Curve:
        """What has been added so far."""
        return Curve(
            tuple(bucket.steps / bucket.number for bucket in self._buckets),
            tuple(bucket.total / bucket.number for bucket in self._buckets),
            tuple(bucket.low for bucket in self._buckets), tuple(bucket.high for bucket in self._buckets), self._last,
        )
