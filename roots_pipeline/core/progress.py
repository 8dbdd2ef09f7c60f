"""Progress: a bar for people, JSON lines for machines.

On a terminal `rich` draws; elsewhere each event is one JSON object a line on standard error, so that logs of a
cluster stay readable by programs. Results (what a command was asked for) go to standard output, never through here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

_EVERY_SECONDS = 5.0


class Bar:
    """One stage under way. `advance` counts finished units."""

    def __init__(self, progress: Progress, title: str, total: int, drawn: Any = None) -> None:
        self._progress, self._title, self._total, self._drawn = progress, title, total, drawn
        self._done, self._spoke = 0, time.monotonic()

    def advance(self, units: int = 1) -> None:
        self._done += units
        if self._drawn is not None:
            drawer, task = self._drawn
            drawer.advance(task, units)
        elif time.monotonic() - self._spoke > _EVERY_SECONDS:
            self._spoke = time.monotonic()
            self._progress.event("progress", stage=self._title, done=self._done, total=self._total)


class Progress:
    """Where a command reports what it is doing; `quiet` silences all but errors."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._terminal = self._stream.isatty() and not quiet
        self._console = Console(file=self._stream)

    @contextmanager
    def stage(self, title: str, total: int) -> Iterator[Bar]:
        """A stage of `total` units."""
        started = time.monotonic()
        if self._terminal:
            columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(),
                       TimeElapsedColumn(), TimeRemainingColumn())
            with RichProgress(*columns, console=self._console) as drawer:
                yield Bar(self, title, total, (drawer, drawer.add_task(title, total=total)))
            return
        yield Bar(self, title, total)
        self.event("stage", stage=title, units=total, seconds=round(time.monotonic() - started, 2))

    def say(self, text: str, **fields: Any) -> None:
        """One sentence, with facts for machines."""
        if self._terminal:
            self._console.print(text, markup=False, highlight=False)
        else:
            self.event("note", text=text, **fields)

    def event(self, kind: str, **fields: Any) -> None:
        """One JSON line (nothing on a terminal, where `stage` and `say` draw)."""
        if not self._terminal and not self._quiet:
            line = orjson.dumps({"event": kind, **fields}, option=orjson.OPT_SERIALIZE_NUMPY)
            print(line.decode(), file=self._stream, flush=True)
