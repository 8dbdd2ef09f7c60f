"""All commands of all packages understand the same options, each defined once."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import typer

from roots_pipeline.core import options

PACKAGES = ("roots_pipeline", "tokenizer", "mixtures", "train")
# Commands that have no result to be asked for in another form.
WITHOUT = {"schema": "prints JSON anyway", "explore": "serves a page until it is interrupted"}
# Commands that take long or take something away and can tell beforehand.
DRY = {("roots_pipeline", "run"), ("roots_pipeline", "remove"), ("tokenizer", "train"), ("mixtures", "write"),
       ("train", "run")}


def commands() -> list[tuple[str, str, Any]]:
    groups = {name: typer.main.get_command(importlib.import_module(f"{name}.__main__").app) for name in PACKAGES}
    return [(package, name, command) for package, group in groups.items()
            for name, command in group.commands.items()]  # type: ignore[attr-defined]


ALL = commands()


def by_flag(command: Any) -> dict[str, Any]:
    return {flag: parameter for parameter in command.params for flag in parameter.opts}


@pytest.mark.parametrize(("package", "name", "command"), ALL, ids=[f"{package} {name}" for package, name, _ in ALL])
def test_common_options(package: str, name: str, command: Any) -> None:
    flags = by_flag(command)
    assert command.help, "says what it does"
    if name not in WITHOUT:
        for flag, option in (("--quiet", options.Quiet), ("--json", options.Json)):
            assert flag in flags and flags[flag].help == option.__metadata__[0].help
    for flag, option in (("--dry-run", options.DryRun), ("--recipe", options.Recipe)):
        assert flag not in flags or package == "train" or flags[flag].help == option.__metadata__[0].help
    assert ("--dry-run" in flags) == ((package, name) in DRY)
    if "--workers" in flags and name not in ("sweep", "fit"):
        assert flags["--workers"].help == options.Workers.__metadata__[0].help


def test_exceptions_are_commands_that_there_are() -> None:
    assert set(WITHOUT) <= {name for _, name, _ in ALL} and {(package, name) for package, name, _ in ALL} >= DRY
