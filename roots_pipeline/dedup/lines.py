"""Repeated lines and sentences: templates, menus, boilerplate that recur in a data set, a domain or the whole corpus.

What is compared are lines, or runs of lines or sentences, without the white space around them. Three rounds, each an
exchange of its own:

1. `LineScopes`     how many documents a data set or domain has   key: scope        (only if `minimum_share` is set)
2. `RepeatedLines`  which lines occur often enough                key: line         hashes and counts, no text
3. `LineCopies`     which copies go, decided by 128 bits          key: line         those lines alone

Lines are counted in each batch before they travel, so a line that is in every document costs one entry a batch.

In: documents. Out: `text` without the lines, `cut_bytes`, and the verdict `repeated_lines` for documents of which too
little is left; their `cause` is a document with a copy of their longest line (itself, if nothing else has it).

As published (ROOTS catalogue cleaning, 01a, pseudo-crawl and tokenizer; C4, Raffel et al. 2020, section 2.2):
`dedup_template_soft`           minimum_characters: 15, minimum_times: 10, strip_lines: true
`dedup_pseudocrawl_newspapers`  minimum_characters: 0, minimum_times: 2, strip_lines: true
lines of a pseudo-crawl domain  scope: domain, count: documents, minimum_share: 0.01, minimum_characters: 0
`ram_dedup_lines`               scope: corpus, keep: first, minimum_characters: 0, minimum_times: 2, strip_lines: true
C4, spans of three sentences    scope: corpus, keep: first, unit: sentences, run: 3, minimum_times: 2,
                                minimum_characters: 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import with_columns
from roots_pipeline.core.stages import FINDING_FIELDS, KEY_FIELDS, CauseIs, Exchange, Map
from roots_pipeline.dedup.line_copies import LineCopies
from roots_pipeline.dedup.line_keys import LineSettings, Scope, Unit, lines_of, taking_part
from roots_pipeline.dedup.line_scopes import LineScopes
from roots_pipeline.dedup.row_lists import collect, empty_lists

# Lines of a batch that occur often enough, in the list of the first row that has them.
REPEATED = pa.schema([pa.field("key", pa.uint64())])
_ENTRIES = pa.schema([*KEY_FIELDS, pa.field("times", pa.int64()), pa.field("least", pa.int64())])


@dataclass(frozen=True, slots=True)
class PrepareLines(Map):
    """Adds the measure `cut_bytes` and empty working columns for the rounds to come."""

    name: ClassVar[str] = "prepare_lines"
    settings: LineSettings

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    @property
    def gives(self) -> tuple[str, ...]:
        return ("cut_bytes", self.settings.documents, self.settings.repeated)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        length = batch.num_rows
        new = {self.settings.documents: pa.array(np.zeros(length, np.int64)),
               self.settings.repeated: empty_lists(REPEATED, length)}
        if "cut_bytes" not in batch.schema.names:  # else a stage before has cut already
            new["cut_bytes"] = pa.array(np.zeros(length))
        return with_columns(batch, new)


@dataclass(frozen=True, slots=True)
class RepeatedLines(Exchange):
    """Cuts lines that occur at least `minimum_times` times within their scope.

    `unit`, `run`         what is compared: runs of so many `lines` or `sentences` of one document
    `scope`               where they are counted: in each `source` (data set), each `domain` (documents without a URL
                          take no part), or the whole `corpus`
    `keep`                `none`: all copies go; `first`: the first of the best-ranked document stays
    `count`               occurrences (`lines`), or documents that have them (`documents`)
    `minimum_characters`  shorter ones are never cut
    `minimum_share`       they must be in more than this share of the documents of the scope, too
    `lower_case`          whether case is ignored
    `strip_lines`         all lines of all documents that take part lose the white space around them, as published
    `minimum_left`        documents that lost something and have fewer bytes left are dropped, or fewer lines or
    `minimum_segments`    sentences; those with nothing but white space left always are
    `prefer`              names of sources, best first; sources not named rank behind, then ids decide
    """

    name: ClassVar[str] = "repeated_lines"
    cause_is: ClassVar[CauseIs] = "document"
    unit: Unit = "lines"
    run: int = 1
    scope: Scope = "source"
    keep: Literal["none", "first"] = "none"
    count: Literal["lines", "documents"] = "lines"
    minimum_characters: int = 15
    minimum_times: int = 10
    minimum_share: float = 0.0
    lower_case: bool = False
    strip_lines: bool = False
    minimum_left: int = 0
    minimum_segments: int = 0
    prefer: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("run", 1), ("minimum_times", 2), ("minimum_characters", 0), ("minimum_left", 0),
                            ("minimum_segments", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        if not 0 <= self.minimum_share < 1:
            raise ValueError(f"minimum_share {self.minimum_share} is not a share from 0 up to below 1.")
        if self.strip_lines and self.unit != "lines":
            raise ValueError("strip_lines is for unit: lines; white space around sentences is never compared.")

    def advice(self) -> list[str]:
        """A warning about settings that delete documents which exist twice."""
        if self.keep == "first" or self.minimum_times > 2:
            return []
        return ["all copies of a line that occurs twice are cut, so a document that exists twice loses all its lines: "
                "drop duplicates of documents in a stage before, or set keep: first."]

    @property
    def settings(self) -> LineSettings:
        """What all rounds share."""
        return LineSettings(
            self.unit, self.run, self.scope, self.keep, self.count, self.minimum_characters, self.minimum_times,
            self.minimum_share, self.lower_case, self.strip_lines,
        )

    def rounds(self) -> tuple[Exchange, ...]:
        copies = LineCopies(self.settings, self.name, self.prefer, self.minimum_left, self.minimum_segments)
        first = (LineScopes(self.settings, self._columns()),) if self.minimum_share else ()
        return (*first, self, copies)

    def _columns(self) -> PrepareLines:
        return PrepareLines(self.settings)

    @property
    def needs(self) -> tuple[str, ...]:
        own = self.settings
        return ("text", "verdict", *own.scope_needs, own.documents, own.repeated)

    @property
    def gives(self) -> tuple[str, ...]:
        return (self.settings.repeated,)

    def prepare(self) -> Map | None:
        return None if self.minimum_share else self._columns()  # the round before has them already

    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        own = self.settings
        lines = lines_of(batch, taking_part(batch, own), own)
        order = np.argsort(lines.high, kind="stable")  # rows stay in order
        key, row = lines.high[order], lines.rows[order]
        new_key, new_row = np.ones(len(key), bool), np.ones(len(key), bool)
        new_key[1:] = key[1:] != key[:-1]
        new_row[1:] = new_key[1:] | (row[1:] != row[:-1])
        starts = np.flatnonzero(new_key)
        times = np.add.reduceat((new_row if self.count == "documents" else np.ones(len(key), bool)).astype(np.int64),
                                starts) if len(starts) else np.empty(0, np.int64)
        columns = [key[starts], np.full(len(starts), shard, np.int32), row[starts] + first_row, times,
                   own.least(batch)[row[starts]]]
        return pa.table(columns, schema=_ENTRIES)

    def resolve(self, entries: pa.Table) -> pa.Table:
        names = ("key", "times", "least")
        key, times, least = (entries.column(name).to_numpy() for name in names)
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.append(True, key[order][1:] != key[order][:-1])[: len(key)])
        often = np.empty(0, np.int64)
        if len(starts):
            total = np.add.reduceat(times[order], starts)
            enough = total >= np.minimum.reduceat(least[order], starts)
            often = order[np.repeat(enough, np.diff(np.append(starts, len(order))))]
        columns = [entries.column(name).take(pa.array(often)) for name in ("shard", "row", "key")]
        columns.insert(2, pa.nulls(len(often), pa.string()))
        return pa.table(columns, schema=pa.schema([*FINDING_FIELDS, *REPEATED]))

    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        column = self.settings.repeated
        if column not in batch.schema.names:
            return batch
        rows = findings.column("row").to_numpy() - first_row
        return with_columns(batch, {column: collect(findings.select(REPEATED.names), rows, batch.num_rows)})
