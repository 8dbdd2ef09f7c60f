"""Verdicts from limits on measures, by language. Needs no text, so a changed limit re-judges a corpus in seconds.

language, verdict, measures ──▶ verdict: the name of the first measure that lies outside its limits
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import kept, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.columns import DEFAULT, by_code, encode_languages, floats
from roots_pipeline.rules.presets import load_data

Limits = dict[str, dict[str, tuple[float | None, float | None] | None]]


@dataclass(frozen=True, slots=True)
class Thresholds(Map):
    """Drops documents with a measure below its minimum or above its maximum; a limit itself is allowed.

    `limits`: {language: {measure: [minimum or null, maximum or null]}}. Entries of the language `default` hold for
    every language (and for documents without one) unless the language has an entry of its own for the measure; `null`
    there takes the limit away. `preset` names built-in limits (`rules/data/<preset>_limits.yaml`) that `limits` change
    entry by entry; an empty preset starts from none. A measure that is null has no say. Documents that have a verdict
    keep it. If several measures are outside, the first one in the order of `default`, then of the language, is named.
    """

    name: ClassVar[str] = "thresholds"
    preset: str = "massivetext"
    limits: Limits = field(default_factory=dict)

    def __post_init__(self) -> None:
        built_in = _built_in(self.preset) if self.preset else {}
        given = by_code(self.limits)
        languages = [DEFAULT, *(name for name in {**built_in, **given} if name != DEFAULT)]
        merged = {name: {**(built_in.get(name) or {}), **(given.get(name) or {})} for name in languages}
        object.__setattr__(self, "limits", {name: _checked(name, entries) for name, entries in merged.items()})

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that are limited in some language, in the order in which they are looked at."""
        return tuple(dict.fromkeys(measure for entries in self.limits.values() for measure in entries))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("language", "verdict", *self.measures)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict",)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return self.measures

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        languages, rows = encode_languages(batch.column("language"))
        undecided = kept(batch)
        cause = np.full(batch.num_rows, -1, np.int64)
        for number, measure in enumerate(self.measures):
            if measure not in batch.schema.names:
                raise RecipeError(
                    f"there is no measure '{measure}' to compare with its limits.",
                    where="stage 'thresholds'",
                    hint="Put the stage that takes the measure before it, or remove the limit.",
                )
            bounds = np.array([self._bounds(language, measure) for language in languages]).reshape(-1, 2)
            alike = len(bounds) > 0 and bool((bounds == bounds[0]).all())
            low, high = bounds[0] if alike else bounds[rows].T
            values = floats(batch.column(measure))
            outside = (values < low) | (values > high)
            cause[undecided & outside & (cause < 0)] = number
        verdicts = pa.DictionaryArray.from_arrays(
            pa.array(cause, mask=cause < 0), pa.array([*self.measures], pa.string())
        ).cast(pa.string())
        return with_columns(batch, {"verdict": batch.column("verdict").fill_null(verdicts)})

    def _bounds(self, language: str, measure: str) -> tuple[float, float]:
        limit = {**self.limits[DEFAULT], **self.limits.get(language, {})}.get(measure)
        low, high = limit or (None, None)
        return (-np.inf if low is None else low, np.inf if high is None else high)


def _built_in(preset: str) -> Limits:
    """The limits of a preset; those of another one, entry by entry changed, if it is `based_on` that."""
    entries = dict(load_data(f"{preset}_limits"))
    base: Limits = _built_in(entries.pop("based_on")) if "based_on" in entries else {}
    return {language: {**base.get(language, {}), **entries.get(language, {})} for language in {**base, **entries}}


def _checked(
    language: str, entries: Mapping[str, tuple[float | None, float | None] | None]
) -> dict[str, tuple[float | None, float | None] | None]:
    checked: dict[str, tuple[float | None, float | None] | None] = {}
    for measure, limit in entries.items():
        if limit is None:
            checked[measure] = None
            continue
        low, high = limit
        if low is not None and high is not None and low > high:
            raise RecipeError(
                f"the limits of '{measure}' for '{language}' are [{low}, {high}]; no value is between them.",
                where="stage 'thresholds'",
                hint="Write [minimum, maximum], with null for none.",
            )
        checked[measure] = (low, high)
    return checked
