"""The working columns in which the rounds of passage cutting keep what they found, and how equal spans are found."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

# Records (`text.windows`) whose anchor occurs more than once, or that may repeat their own windows (periodic).
RECORDS = pa.schema([
    pa.field("start", pa.int64()), pa.field("windows", pa.int32()), pa.field("place", pa.int32()),
    pa.field("periodic", pa.bool_()),
])
# Spans to cut, in bytes of the text, and a document with another copy; without one, a span that others lose and that
# has its first copy here.
SPANS = pa.schema([pa.field("start", pa.int64()), pa.field("stop", pa.int64()), pa.field("cause", pa.string())])
# Records to be compared window by window, and whether each window goes its own way because too many records have that
# anchor.
OPEN = pa.schema([*RECORDS, pa.field("split", pa.bool_())])


@dataclass(frozen=True, slots=True)
class PassageColumns:
    """Names of the working columns; they follow from the length of a window, which they share."""

    length: int

    @property
    def records(self) -> str:
        return f"_passage_records_{self.length}"

    @property
    def spans(self) -> str:
        return f"_passage_spans_{self.length}"

    @property
    def open(self) -> str:
        return f"_passage_open_{self.length}"


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
