"""Options that mean the same in every command of every package, defined once."""

from __future__ import annotations

from typing import Annotated

import typer

Recipe = Annotated[str, typer.Option(help="Name of a built-in recipe, or path to a YAML file.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no remarks, only the result.")]
Json = Annotated[bool, typer.Option("--json", help="The result as one JSON value, for programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing, only tell what would be done.")]
