"""Licences of program source: read from the header of each file, and judged by a list.

    text ──▶ license (`detect_license`) ──▶ verdict `license` (`filter_license`)

ROOTS meant to leave out what is under a licence of the GNU project, and by a slip kept nothing else (paper, section
2.1; processing.py). By default the slip is mended; `as_published` brings it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.stages import Map
from roots_pipeline.rules.licenses import HEADER_BYTES, allows, license_of

VERDICT = "license"
GNU = ("gpl", "lgpl", "agpl")
KEPT_BY_ROOTS = ("lgpl-3.0", "agpl-3.0", "lgpl-2.1", "gpl-3.0", "gpl-2.0")


@dataclass(frozen=True, slots=True)
class DetectLicense(Map):
    """Fills `license` with what the header says, as an SPDX expression.

    A licence that is known keeps its place; with `header_wins` it goes where the header names another.
    """

    name: ClassVar[str] = "detect_license"
    header_wins: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "license")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("license",)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        licenses = batch.column("license").to_pylist()
        for row, (start, stop) in enumerate(pairwise(offsets.tolist())):
            if self.header_wins or licenses[row] is None:
                licenses[row] = license_of(data[start : min(stop, start + HEADER_BYTES)].tobytes()) or licenses[row]
        return with_columns(batch, {"license": pa.array(licenses, pa.string())})


@dataclass(frozen=True, slots=True)
class FilterLicense(Map):
    """Drops documents by their licence; the verdict is `license`, the cause the licence.

    `refuse` are names of licences or of families (`gpl` is every version of the GPL, `gpl-2.0` also
    `GPL-2.0-or-later`), `require`, if there are any, those without which a document goes. Of `A OR B` the better one
    counts. `unknown` says what becomes of documents whose licence is not known. `as_published` requires one of
    KEPT_BY_ROOTS.
    """

    name: ClassVar[str] = "filter_license"
    refuse: tuple[str, ...] = GNU
    require: tuple[str, ...] = ()
    unknown: Literal["keep", "drop"] = "keep"
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.as_published:
            for setting, value in (("refuse", ()), ("require", KEPT_BY_ROOTS), ("unknown", "drop")):
                object.__setattr__(self, setting, value)
        if not all(name.strip() for name in (*self.refuse, *self.require)):
            raise RecipeError("the empty string names no licence.", where="stage 'filter_license'",
                              hint="Write names of SPDX, or families such as 'gpl'.")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("license", "verdict", "cause")

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    @property
    def verdicts(self) -> tuple[str, ...]:
        return (VERDICT,)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        encoded = batch.column("license").dictionary_encode()
        passes = np.array([self._passes(name) for name in encoded.dictionary.to_pylist()] + [self.unknown == "keep"])
        rows = encoded.indices.fill_null(len(passes) - 1).to_numpy(zero_copy_only=False)
        drop = kept(batch) & ~passes[rows]
        verdicts = pa.array(np.where(drop, VERDICT, ""), pa.string(), mask=~drop)
        names = batch.column("license").fill_null("unknown")
        causes = pa.array(names.to_pylist(), pa.string(), mask=~drop)
        return with_columns(batch, {"verdict": batch.column("verdict").fill_null(verdicts),
                                    "cause": batch.column("cause").fill_null(causes)})

    def _passes(self, expression: str) -> bool:
        if not expression.strip():
            return self.unknown == "keep"
        return allows(expression, lambda name: (not self.require or _is_one(name, self.require))
                      and not _is_one(name, self.refuse))


@lru_cache(maxsize=4096)
def _is_one(name: str, listed: tuple[str, ...]) -> bool:
    """Whether a licence is one of a list of licences and families."""
    plain = name.lower().removeprefix("licenseref-").removesuffix("+")
    return any(plain == entry or plain.startswith(f"{entry}-") for entry in map(str.lower, listed))
