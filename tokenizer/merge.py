"""Merge sorted count tables as streams: memory depends on how many tables there are, not on how large they are.

In each round the smallest of the last rows in memory is a bound: every row up to it is in memory, in all
tables. These rows are added up and passed on; then the tables that ran dry read on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from roots_pipeline.core.tasks import Commit
from tokenizer.counts_file import read_counts, sort_counts, write_counts

Key = tuple[str, str, bytes]


def merge_counts(streams: Iterable[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Slices of the sum of sorted count tables, each given as its slices."""
    sources = [_Source(stream) for stream in streams]
    while sources := [source for source in sources if source.fill()]:
        bound = min(source.last for source in sources)
        yield sort_counts(pa.concat_tables([source.take_up_to(bound) for source in sources]))


class _Source:
    """One table: its stream and the rows read but not yet passed on."""

    def __init__(self, stream: Iterator[pa.Table]) -> None:
        self._stream = stream
        self._rows: pa.Table | None = None
        self._done = 0

    def fill(self) -> bool:
        """Read the next slice if none is left in memory; False at the end."""
        while self._rows is None or self._done == len(self._rows):
            self._rows, self._done = next(self._stream, None), 0
            if self._rows is None:
                return False
        return True

    @property
    def last(self) -> Key:
        return self._key(len(self._rows) - 1)  # type: ignore[arg-type]

    def take_up_to(self, bound: Key) -> pa.Table:
        """The rows up to and including `bound`."""
        assert self._rows is not None
        start = self._done
        self._done = bisect_right(range(len(self._rows)), bound, lo=start, key=self._key)
        return self._rows.slice(start, self._done - start)

    def _key(self, row: int) -> Key:
        assert self._rows is not None
        language, source, piece = (self._rows[name][row].as_py() for name in ("language", "source", "piece"))
        return language, source, piece


def merge_shards(commit: Commit, inputs: list[str], output: str) -> dict[str, Any]:
    """Task: merge count files into one. Result: rows (`pieces`) and, by language, rows and `occurrences`."""
    languages: dict[str, dict[str, int]] = {}
    with commit.file(output) as temporary:
        rows = write_counts(temporary, _noted(merge_counts(map(read_counts, inputs)), languages))
    return {"pieces": rows, "languages": languages}


def _noted(slices: Iterable[pa.Table], languages: dict[str, dict[str, int]]) -> Iterator[pa.Table]:
    for part in slices:
        summary = part.group_by("language").aggregate([("count", "sum"), ("count", "count")])
        for language, occurrences, pieces in zip(*(column.to_pylist() for column in summary.columns), strict=True):
            noted = languages.setdefault(language, {"pieces": 0, "occurrences": 0})
            noted["pieces"] += pieces
            noted["occurrences"] += occurrences
        yield part
