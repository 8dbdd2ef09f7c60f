"""What every command says and how: `--quiet`, `--json`, and the one place where results are printed.

A result goes to standard output, as text for people or as one JSON value for programs; progress and remarks go to
standard error. Colours and widths follow the terminal: a pipe gets plain text, 120 columns wide.
"""

from __future__ import annotations

from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import to_json

_WIDTH = 120


class Output:
    """Standard output and standard error of one command, as its options ask for."""

    def __init__(self, quiet: bool = False, json: bool = False) -> None:
        self.quiet, self.json = quiet, json
        self.progress = Progress(quiet=quiet)

    def result(self, facts: Any, *parts: str | Table) -> None:
        """What the command was asked for: `facts` with `--json`, else sentences and tables."""
        if self.json:
            print(to_json(facts, orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode())
            return
        for part in parts:
            if isinstance(part, Table):
                Console(width=None if Console().is_terminal else _WIDTH).print(part)
            else:
                print(part)

    def remark(self, text: str) -> None:
        """A sentence beside the result: on standard output for people, nowhere with `--quiet` or `--json`."""
        if not self.quiet and not self.json:
            print(text)


def table(title: str, left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    """An empty table with columns of words and columns of numbers."""
    made = Table(title=title, title_justify="left")
    for name in left:
        made.add_column(name)
    for name in right:
        made.add_column(name, justify="right")
    return made


def closing_table(title: str, rows: dict[str, object]) -> Table:
    """What a command made and where it is: a name and a value a row (numbers with separators)."""
    made = Table(title=title, title_justify="left", show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows.items():
        made.add_row(Text(name), Text(f"{value:,}" if isinstance(value, int) else str(value)))  # not markup
    return made
