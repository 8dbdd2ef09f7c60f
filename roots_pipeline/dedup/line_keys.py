"""The lines of a batch, or runs of lines or sentences, as keys: what the rounds of `lines` share.

In: texts, and what each document is compared within (its source, its domain, the whole corpus). Out: 128 bits for each
line, which differ where the scope differs, and where in the text it is.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from roots_pipeline.core.documents import kept, text_buffers
from roots_pipeline.core.storage import fingerprint
from roots_pipeline.text.segments import Segments, find_segments, runs_of_segments, segment_hashes

Unit = Literal["lines", "sentences"]
Scope = Literal["source", "domain", "corpus"]
Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class LineSettings:
    """What all rounds share; the fields are explained in `lines.RepeatedLines`."""

    unit: Unit
    run: int
    scope: Scope
    keep: Literal["none", "first"]
    count: Literal["lines", "documents"]
    minimum_characters: int
    minimum_times: int
    minimum_share: float
    lower_case: bool
    strip_lines: bool

    @property
    def documents(self) -> str:
        """Column: documents of the scope that a document belongs to."""
        return self._named("documents")

    @property
    def repeated(self) -> str:
        """Column: keys of lines that occur often enough."""
        return self._named("repeated")

    def _named(self, what: str) -> str:
        return f"_lines_{what}_{_mark(self)}"

    def least(self, batch: pa.RecordBatch) -> Numbers:
        """How often a line of each row must occur to count as repeated."""
        documents = batch.column(self.documents).to_numpy()
        share = np.floor(documents * self.minimum_share).astype(np.int64) + 1
        least: Numbers = np.maximum(share, self.minimum_times)
        return least

    def scopes(self, batch: pa.RecordBatch) -> list[str | None]:
        """What a document is compared within; None: it takes no part."""
        if self.scope == "corpus":
            return [""] * batch.num_rows
        if self.scope == "source":
            return [str(name) for name in batch.column("source").to_pylist()]
        return [domain_of(url) for url in batch.column("url").to_pylist()]

    @property
    def scope_needs(self) -> tuple[str, ...]:
        return {"corpus": (), "source": ("source",), "domain": ("url",)}[self.scope]


@lru_cache(maxsize=64)
def _mark(settings: LineSettings) -> str:
    return fingerprint(astuple(settings))[:8]


def domain_of(url: str | None) -> str | None:
    """The host of a URL in lower case, without `www.`; None if there is none."""
    try:
        host = urlsplit((url or "").strip()).hostname
    except ValueError:
        return None
    return host.removeprefix("www.") or None if host else None


@dataclass(frozen=True, slots=True)
class BatchLines:
    """All lines (or runs of them) of a batch that are long enough: row, keys, segments `first` to `first + run - 1`."""

    rows: Numbers
    high: Keys
    low: Keys
    first: Numbers
    segments: Segments


def lines_of(batch: pa.RecordBatch, rows: Numbers, settings: LineSettings) -> BatchLines:
    """The lines of some rows of a batch, in the order of the text."""
    data, offsets = text_buffers(texts_of(batch, rows))
    segments = find_segments(data, offsets, settings.unit == "sentences", settings.minimum_characters)
    hashes = segment_hashes(data, segments, settings.lower_case)
    begins, (high, low) = runs_of_segments(hashes, segments.text, settings.run)
    total = np.append(0, np.cumsum(segments.characters))
    enough = total[begins + settings.run] - total[begins] >= settings.minimum_characters
    begins, high, low = begins[enough], high[enough], low[enough]
    text = segments.text[begins]
    scopes = settings.scopes(batch.select(list(settings.scope_needs)).take(pa.array(rows)))
    digest = {scope: xxhash.xxh3_128_digest(scope or "") for scope in set(scopes)}
    salts = np.frombuffer(b"".join([digest[scope] for scope in scopes]), "<u8").reshape(-1, 2)
    return BatchLines(rows[text], _salted(high, salts[text, 0]), _salted(low, salts[text, 1]), begins, segments)


def texts_of(batch: pa.RecordBatch, rows: Numbers) -> pa.Array:
    """The texts of some rows (sorted, each once); nothing is copied if these are all."""
    texts = batch.column("text")
    return texts if len(rows) == len(texts) else texts.take(pa.array(rows))


def _salted(hashes: Keys, salts: Keys) -> Keys:
    """Hashes that differ where the salt differs; multiplied by an odd number, so that all bits take part in the key."""
    keys: Keys = (hashes ^ salts) * np.uint64(0x9E3779B97F4A7C15)
    return keys


def taking_part(batch: pa.RecordBatch, settings: LineSettings) -> Numbers:
    """Rows that are kept so far and belong to a scope."""
    scoped = np.array([scope is not None for scope in settings.scopes(batch)], bool)
    return np.flatnonzero(kept(batch) & scoped)
