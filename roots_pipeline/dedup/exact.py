"""Exact duplicates: of all documents with equal text, the one of best rank stays.

Equality is that of a 128-bit hash of the text, or of what is left of it without some characters (`ignore`):
`white_space`  for code, as the ROOTS paper did (section 2.1)
`white_space_digits_punctuation`  as `dedup_document` of ROOTS did (white space and decimal digits of all scripts, but
               ASCII punctuation only). There, all texts that hold nothing else were equal; here such a text is equal to
               itself alone, unless `as_published`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import CauseIs, Exchange, Map
from roots_pipeline.dedup.equal_keys import EqualKeys, all_but_the_best
from roots_pipeline.dedup.known_texts import HASHES, KnownTexts
from roots_pipeline.dedup.ranks import LENGTH_COLUMN, Ranking
from roots_pipeline.dedup.reference import check_reference, read_reference
from roots_pipeline.text.hashes import hash_texts, hash_texts_without, white_space, white_space_digits_punctuation

Ignore = Literal["nothing", "white_space", "white_space_digits_punctuation"]


@dataclass(frozen=True, slots=True)
class TextHash(Map):
    """Adds the 128-bit hash of each text (two uint64 halves) and its number of bytes as working columns."""

    name: ClassVar[str] = "text_hash"
    ignore: Ignore = "nothing"
    as_published: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        kind = f"{self.ignore}_as_published" if self.as_published else self.ignore
        return (f"_hash_high_{kind}", f"_hash_low_{kind}", LENGTH_COLUMN)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        if self.ignore == "nothing":
            hashes = hash_texts(data, offsets)
        elif self.ignore == "white_space":
            hashes = hash_texts_without(data, offsets, white_space(), False)
        else:
            hashes = hash_texts_without(data, offsets, white_space_digits_punctuation(), not self.as_published)
        high, low, length = self.gives
        return with_columns(batch, {
            high: pa.array(hashes[:, 0]), low: pa.array(hashes[:, 1]), length: pa.array(np.diff(offsets).astype(float)),
        })


@dataclass(frozen=True, slots=True)
class ExactDuplicates(Exchange):
    """Keeps the best-ranked of all documents with equal text; the others name it as their cause.

    `ignore`        characters that do not count
    `as_published`  texts of nothing but such characters are all equal
    `prefer`        names of sources, best first; sources not named rank behind them, all alike
    `measure`       what decides between documents of equal sources: `length` or the name of a measure, most first; with
                    a `-` before it, least first; then the smallest id
    `against`       folders with hashes of other corpora (see `reference`): texts that these hold are dropped first
    """

    name: ClassVar[str] = "exact_duplicates"
    cause_is: ClassVar[CauseIs] = "twin"
    ignore: Ignore = "nothing"
    as_published: bool = False
    prefer: tuple[str, ...] = ()
    measure: str = ""
    against: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for folder in self.against:
            check_reference(folder, self.name, self.settings())

    def settings(self) -> dict[str, object]:
        """The part of the parameters that decides what equal means."""
        return {"ignore": self.ignore, "as_published": self.as_published}

    @property
    def _keys(self) -> EqualKeys:
        high, low, _ = self.hashing().gives
        return EqualKeys(high, low, Ranking(self.prefer, self.measure))

    def hashing(self) -> TextHash:
        """The map that makes the keys."""
        return TextHash(self.ignore, self.as_published)

    def rounds(self) -> tuple[Exchange, ...]:
        references = [read_reference(folder, self.name, self.settings()) for folder in self.against]
        known = [KnownTexts(tuple(one.paths("hashes")), one.content, self.hashing(), number == 0)
                 for number, one in enumerate(references)]
        return (*known, self)

    @property
    def needs(self) -> tuple[str, ...]:
        return self._keys.needs

    @property
    def gives(self) -> tuple[str, ...]:
        return ("verdict", "cause")

    @property
    def verdicts(self) -> tuple[str, ...]:
        return (self.name, KnownTexts.name)

    def prepare(self) -> Map | None:
        return None if self.against else self.hashing()  # else the first round has them already

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        return self._keys.emit(batch, shard, first_row)

    def resolve(self, entries: pa.Table) -> pa.Table:
        return all_but_the_best(entries)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        return self._keys.apply(batch, findings, first_row, self.name)

    def remember(self, batch: pa.RecordBatch, first_row: int) -> dict[str, pa.Table]:
        """The hashes of a batch, for later corpora: see `reference`."""
        high, low, _ = self.hashing().gives
        return {"hashes": pa.table([batch.column(name) for name in (high, low, "id")], schema=HASHES)}
