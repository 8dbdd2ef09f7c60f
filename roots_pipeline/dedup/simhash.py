"""Near duplicates by SimHash, as ROOTS removed them from OSCAR (section 3.2): 64 bits, at most 4 of them different.

Hashes of windows of six characters (of words in English), lower-cased, without punctuation; documents of more than 6000
characters stay. Four faults of the published code are mended, unless `as_published` asks for them: the last window of a
text is left out, so all texts shorter than a window have the same hash; documents with equal hashes are no pair; and
all but one of a chain of similar documents go, whether or not they resemble the one that stays. Three rounds:

1. `SimHashDuplicates`  documents with equal hashes     key: hash
2. `NearHashes`         hashes with few bits different  key: two of six blocks of bits
3. `SimHashSurvivors`   who stays                       one partition

In: documents with their language. Out: verdict `simhash_duplicates`, `cause` = the id of the document that stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import kept, text_buffers, with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, CauseIs, Exchange, Map
from roots_pipeline.dedup.row_lists import collect, empty_lists
from roots_pipeline.dedup.simhash_near import NearHashes, hash_keys
from roots_pipeline.dedup.simhash_survivors import EDGES, SimHashSettings, SimHashSurvivors
from roots_pipeline.text.simhash import CHARACTERS, WORDS, simhash_texts

_ENTRIES = pa.schema([
    *KEY_FIELDS, pa.field("hash", pa.uint64()), pa.field("rank", pa.int32()), pa.field("id", pa.large_string()),
    pa.field("long", pa.bool_()),
])
_FINDINGS = pa.schema([*FINDING_FIELDS, *(pa.field(f"other_{field.name}", field.type) for field in EDGES)])


@dataclass(frozen=True, slots=True)
class SimHash(Map):
    """Adds the SimHash of each text, whether it is long, and empty columns for the rounds to come."""

    name: ClassVar[str] = "simhash"
    settings: SimHashSettings

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text", "language")

    @property
    def gives(self) -> tuple[str, ...]:
        own = self.settings
        return (own.column, own.long, own.leads, own.edges)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        own, length = self.settings, batch.num_rows
        english = pc.fill_null(pc.equal(batch.column("language"), "en"), False).to_numpy(zero_copy_only=False)
        units = np.where(english, WORDS, CHARACTERS).astype(np.uint8)
        # str.lower and not Arrow's: the original used it, and it knows about final sigma and letters that become two.
        lower = pa.array([text.lower() for text in batch.column("text").to_pylist()], pa.large_string())
        hashes, windows = simhash_texts(*text_buffers(lower), units, own.window, drop_last=own.as_published)
        nothing = np.zeros(length, bool) if own.as_published else windows == 0
        long = pc.greater(pc.utf8_length(batch.column("text")), own.long_characters)
        return with_columns(batch, {
            own.column: pa.array(hashes, mask=nothing), own.long: long, own.leads: pa.nulls(length, pa.bool_()),
            own.edges: empty_lists(EDGES, length),
        })


@dataclass(frozen=True, slots=True)
class SimHashDuplicates(Exchange):
    """Keeps the best-ranked of documents whose SimHashes differ in at most `distance` bits.

    `window`           characters (or words) in a window
    `blocks`           into how many parts a hash is cut to find its neighbours; more than `distance`
    `long_characters`  documents of more characters are never dropped, and rank before all others
    `as_published`     what the code of ROOTS did, faults included (see above); the best of a cluster stays
    `prefer`           names of sources, best first; sources not named rank behind, then ids decide
    """

    name: ClassVar[str] = "simhash_duplicates"
    cause_is: ClassVar[CauseIs] = "twin"
    window: int = 6
    distance: int = 4
    blocks: int = 6
    long_characters: int = 6000
    as_published: bool = False
    prefer: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"window must be at least 1, not {self.window}.")
        if not 0 <= self.distance < self.blocks <= 16:
            raise ValueError(f"blocks ({self.blocks}) must be more than distance ({self.distance}) and at most 16.")

    @property
    def settings(self) -> SimHashSettings:
        """The part of the settings that all rounds share."""
        return SimHashSettings(self.window, self.long_characters, self.as_published, self.prefer)

    def rounds(self) -> tuple[Exchange, ...]:
        return (self, NearHashes(self.settings, self.distance, self.blocks), SimHashSurvivors(self.settings, self.name))

    @property
    def needs(self) -> tuple[str, ...]:
        own = self.settings
        return ("id", "source", "verdict", own.column, own.long)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.settings.edges, self.settings.leads)

    def prepare(self) -> Map:
        return SimHash(self.settings)

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        hashes = batch.column(self.settings.column)
        rows = np.flatnonzero(kept(batch) & hashes.is_valid().to_numpy(zero_copy_only=False))
        at = pa.array(rows)
        columns = [
            hash_keys(hashes.take(at).to_numpy()), np.full(len(rows), shard, np.int32), rows + first_row,
            hashes.take(at), self.settings.ranks(batch).take(at), batch.column("id").take(at).cast(pa.large_string()),
            batch.column(self.settings.long).take(at),
        ]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        by_rank = [(name, "ascending") for name in ("hash", "rank", "id", "shard", "row")]
        entries = entries.take(pc.sort_indices(entries, sort_keys=by_rank)).combine_chunks()
        hashes = entries.column("hash").to_numpy()
        same = np.zeros(len(hashes), bool)  # same hash as the entry before
        same[1:] = hashes[1:] == hashes[:-1]
        first = np.maximum.accumulate(np.where(same, 0, np.arange(len(hashes))))
        copies = pa.array(np.flatnonzero(same))
        best = entries.take(pa.array(first[same]))
        columns = [
            entries["shard"].take(copies), entries["row"].take(copies), pa.nulls(len(copies), pa.string()),
            best["shard"], best["row"], best["rank"], best["id"], best["long"], np.zeros(len(copies), np.int32),
        ]
        return pa.table(columns, schema=_FINDINGS)

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        own = self.settings
        if own.edges not in batch.schema.names:
            return batch
        rows = findings.column("row").to_numpy() - first_row
        leads = kept(batch) & batch.column(own.column).is_valid().to_numpy(zero_copy_only=False)
        leads[rows] = False
        edges = findings.select(_FINDINGS.names[3:]).rename_columns(EDGES.names)
        return with_columns(batch, {own.edges: collect(edges, rows, batch.num_rows), own.leads: pa.array(leads)})
