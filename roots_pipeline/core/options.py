"""Options that mean the same in every command of every package, defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roots_pipeline.core.recipe import PACKAGES


def recipes(incomplete: str) -> list[str]:
    """What a shell may complete the name of a recipe to: built-in names, and YAML files and folders of the user."""
    root = Path(__file__).parents[2]
    names = sorted({path.stem for package in PACKAGES for path in (root / package / "recipes").glob("*.yaml")})
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    own = [f"{path}/" if path.is_dir() else str(path) for path in sorted(folder.glob("*"))
           if path.is_dir() or path.suffix in (".yaml", ".yml")]
    return [name for name in (*names, *own) if name.startswith(incomplete)]


Recipe = Annotated[
    str | None,
    typer.Option(help="Name of a built-in recipe, or path to a YAML file (default: sample).", autocompletion=recipes),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no remarks, only the result.")]
Json = Annotated[bool, typer.Option("--json", help="The result as one JSON value, for programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing, only tell what would be done.")]
