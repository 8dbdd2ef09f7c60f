"""The two kinds of stage a corpus pipeline is made of. Stages are pure; engines decide where and when they run.

`Map`       batch -> batch: edits text, adds measures, sets verdicts. Sees one document at a time, so it may run
            anywhere and in any order.
`Exchange`  documents that share a key must meet. Three pure steps: `emit` (batch -> keys), `resolve` (all entries of
            some keys -> findings), `apply` (batch + its findings -> batch). `resolve` must not depend on the order in
            which entries arrive, so that shards, workers and engines cannot change the result.

Every stage is a frozen dataclass whose fields are its parameters: they are what a recipe can set, what the
fingerprint covers and what `explain` prints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar, Literal

import pyarrow as pa

# The cause of a verdict: a document that stayed at that stage, any document, or something else.
CauseIs = Literal["twin", "document", "other"]

# Every key entry starts with these columns; an exchange may add small ones of its own.
KEY_FIELDS = [
    pa.field("key", pa.uint64(), nullable=False),
    pa.field("shard", pa.int32(), nullable=False),
    pa.field("row", pa.int64(), nullable=False),
]
# Findings go back to the shard and row they speak of.
FINDING_FIELDS = [
    pa.field("shard", pa.int32(), nullable=False),
    pa.field("row", pa.int64(), nullable=False),
    pa.field("cause", pa.string()),
]


class Stage(ABC):
    """What maps and exchanges have in common."""

    name: ClassVar[str]
    version: ClassVar[int] = 1

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """Names of the columns it reads."""

    @property
    @abstractmethod
    def gives(self) -> tuple[str, ...]:
        """Names of the columns it writes."""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts that it may give; by default its name, if it gives any."""
        return (self.name,) if "verdict" in self.gives else ()

    def parameters(self) -> dict[str, Any]:
        """The stage's settings as plain values; part of the fingerprint of all it produces."""
        return {"stage": self.name, "version": self.version, **asdict(self)}  # type: ignore[call-overload]

    def advice(self) -> list[str]:
        """Sentences for the user about settings that are possible but poor; none if all is well."""
        return []


class Map(Stage):
    """batch -> batch, row by row."""

    @abstractmethod
    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...


class Exchange(Stage):
    """Documents that share a key meet, in partitions of the key space."""

    cause_is: ClassVar[CauseIs] = "other"
    # All entries in one partition, for the rare step that must see them together; None lets the engine choose.
    partitions: ClassVar[int | None] = None

    def rounds(self) -> tuple[Exchange, ...]:
        """The exchanges, in order, that this stage of a recipe stands for; most need one."""
        return (self,)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return (self.name,) if any("verdict" in one.gives for one in self.rounds()) else ()

    def prepare(self) -> Map | None:
        """What has to be taken from the text before keys can be emitted; runs in the pass over the text."""
        return None

    @abstractmethod
    def emit(self, batch: pa.RecordBatch, shard: int, first_row: int) -> pa.Table:
        """Entries (KEY_FIELDS plus what `resolve` needs) of the rows that take part."""

    @abstractmethod
    def resolve(self, entries: pa.Table) -> pa.Table:
        """Findings (FINDING_FIELDS plus what `apply` needs) from all entries of one partition, in any order."""

    @abstractmethod
    def apply(self, batch: pa.RecordBatch, findings: pa.Table, first_row: int) -> pa.RecordBatch:
        """The batch with its findings written in. `findings` holds the shard's rows of this batch only."""

    def published(self, findings: pa.Table) -> pa.Table | None:
        """What of the findings is of interest to people: a table that goes to the corpus. None: nothing is."""
        return None
