"""CSV and TSV: one record a row, with its text in one of the columns.

In: a file of rows (RFC 4180), plain, gzip or zstd, in UTF-8; the first row names the columns unless `columns` does.
Fields in quotes may hold line ends. Out: batches, and a quarantined record for each row that is malformed, too long,
not UTF-8, or has another number of fields than there are columns. A record's number is that of the line it begins on.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.sources.base import BATCH_BYTES, BATCH_ROWS, Quarantined, excerpt
from roots_pipeline.sources.decompress import Damage, decompressed
from roots_pipeline.sources.fields import Fields
from roots_pipeline.sources.files import open_input
from roots_pipeline.sources.lines import split_lines
from roots_pipeline.sources.records import Record, documents

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Csv(Fields):
    """Reader of comma-separated values. `quote: ""` reads quotation marks as they stand."""

    name: ClassVar[str] = "csv"
    version: ClassVar[int] = 1

    delimiter: str = ","
    quote: str = '"'
    columns: tuple[str, ...] = ()
    max_document_bytes: int = 64 << 20  # a quotation mark that is never closed takes in so much and no more

    def __post_init__(self) -> None:
        Fields.__post_init__(self)
        for name, value, most in (("delimiter", self.delimiter, 1), ("quote", self.quote, 0)):
            if len(value) > 1 or len(value) < most or value in ("\r", "\n") or (value and not value.isascii()):
                raise RecipeError(f"`{name}` is {value!r}; it must be one ASCII character.",
                                  where=f"source '{self.source}'")
        if self.delimiter == self.quote:
            raise RecipeError("`delimiter` and `quote` are the same character.", where=f"source '{self.source}'")

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".csv", ".csv.gz", ".csv.zst")

    def read(self, path: str, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.RecordBatch | Quarantined]:
        """See `Reader.read`."""
        block: list[Record] = []
        size = 0
        with open_input(path) as handle:
            lines = _Lines(split_lines(decompressed(handle), self.max_document_bytes))
            for item in self._records(path, lines):
                if isinstance(item, Quarantined):
                    yield item
                    continue
                block.append(item)
                size += sum(map(len, item.fields.values()))
                if size >= batch_bytes or len(block) == BATCH_ROWS:
                    yield from documents(self, path, block)
                    block, size = [], 0
        yield from documents(self, path, block)

    def _records(self, path: str, lines: _Lines) -> Iterator[Record | Quarantined]:
        csv.field_size_limit(self.max_document_bytes)
        rows = csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote or None, strict=True,
                          quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE)
        names = list(self.columns)
        problem: str | None = None
        while True:
            start = lines.begin()
            try:
                row = next(rows, None)
            except csv.Error as error:
                row, problem = [], f"not a row of a CSV file: {error}"
            for number, damage in lines.damages():
                yield Quarantined(path, number, damage.reason, excerpt(damage.head))
            if row is None:
                return
            if problem:
                yield Quarantined(path, start, problem, excerpt(lines.first))
                problem = None
            elif not names and row:
                names, problem = row, self._problem_of(row)
                if problem:
                    yield Quarantined(path, None, problem, excerpt(lines.first))
                    return
            elif row:
                yield self._record(path, start, names, row, lines.first)

    def _problem_of(self, names: list[str]) -> str | None:
        """Why no row under these names could become a document."""
        shown = ", ".join(map(excerpt, names))[:300]
        if self.text_field not in names:
            return f"no column `{self.text_field}`; columns: {shown}"
        return None if len(set(names)) == len(names) else f"two columns have the same name; columns: {shown}"

    def _record(self, path: str, number: int, names: list[str], row: list[str], line: str) -> Record | Quarantined:
        if len(row) != len(names):
            problem = f"the row has {len(row)} fields, and there are {len(names)} columns"
            return Quarantined(path, number, problem, excerpt(line))
        if not all(map(_is_text, row)):
            return Quarantined(path, number, "not valid UTF-8", excerpt(line))
        fields = dict(zip(names, row, strict=True))
        # An empty field is how CSV writes that there is none, but a document may be empty.
        known = {name: value for name, value in fields.items() if value or name == self.text_field}
        return Record(number, known, line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tsv(Csv):
    """Reader of tab-separated values, in which quotation marks mean nothing unless `quote` is set."""

    name: ClassVar[str] = "tsv"
    version: ClassVar[int] = 1

    delimiter: str = "\t"
    quote: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".tsv", ".tsv.gz", ".tsv.zst", ".tab")


class _Lines:
    """Lines as text for the csv module; notes where a row begins and what was damaged."""

    def __init__(self, lines: Iterator[tuple[int, bytes | Damage]]) -> None:
        self._lines = lines
        self._damages: list[tuple[int, Damage]] = []
        self._next = 1
        self._fresh = True
        self.first = ""

    def begin(self) -> int:
        """Say that a row begins; returns the number of its first line."""
        self._fresh = True
        return self._next

    def damages(self) -> list[tuple[int, Damage]]:
        """The damages met since the last call."""
        found, self._damages = self._damages, []
        return found

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for number, line in self._lines:
            self._next = number + 1
            if isinstance(line, Damage):
                self._damages.append((number, line))
                continue
            text = line.decode("utf-8", "surrogateescape")
            if number == 1:
                text = text.removeprefix(_BOM)
            if self._fresh:
                self.first, self._fresh = text[:400], False
            return text + "\n"
        raise StopIteration


def _is_text(value: str) -> bool:
    """False where bytes were not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
