"""The border between our commands and a person: mistakes become one sentence, bugs keep their traceback.

Exit codes: 0 done, 2 the user can fix it, 130 or 143 stopped (Ctrl-C, SIGTERM), 1 a bug of ours.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, NoReturn

import orjson
import typer

from roots_pipeline.core.errors import RecipeError, RootbloomError, StorageError
from roots_pipeline.core.schema import Schema, add_section, section
from roots_pipeline.core.stopping import Stopped, stopping_at_once
from roots_pipeline.core.storage import explain_os_error


def new_app(help_text: str) -> typer.Typer:
    """A typer application with our conventions."""
    return typer.Typer(help=help_text, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def add_schema_command(app: typer.Typer, section_name: str, make: Callable[[], Schema]) -> None:
    """Add the command `schema`, which prints (or puts into a file) the JSON schema of the package's section."""
    def schema(
        into: Annotated[str | None, typer.Option(help="Schema file to add the section to.")] = None,
    ) -> None:
        """Print the JSON schema of recipes, for editors."""
        if into is None:
            print(orjson.dumps(section(section_name, make()), option=orjson.OPT_INDENT_2).decode())
        else:
            add_section(into, section_name, make())

    app.command()(schema)


def run_app(app: typer.Typer) -> NoReturn:
    """Run a command line and leave with its exit code; typer itself answers wrong options (exit code 2)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # text of any language may be printed, whatever the locale
            stream.reconfigure(errors="backslashreplace")
    try:
        _check_text(sys.argv[1:])
        with stopping_at_once():
            app()
    except RootbloomError as error:
        _fail(error)
    except Stopped as stopped:
        name = signal.Signals(stopped.number).name
        print(f"stopped by {name}. What is finished is kept: the same command takes up where this ended.",
              file=sys.stderr)
        sys.exit(stopped.exit_code)
    except OSError as error:
        sentence = explain_os_error(error)
        if sentence is None:
            raise
        _fail(sentence)
    except MemoryError as error:
        _fail(StorageError(f"this needs more memory than there is ({str(error) or 'no size is known'}).",
                           hint="Ask for less, or use a machine with more memory."))
    sys.exit(0)


def _check_text(arguments: list[str]) -> None:
    """Names and texts go into JSON and Parquet, which hold text only. Raises RecipeError for any other bytes."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise RecipeError(f"{argument!r} is no text: character {error.start + 1} is not valid UTF-8.",
                              where="command line", hint="Give it in UTF-8.") from error


def _fail(error: RootbloomError) -> NoReturn:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
