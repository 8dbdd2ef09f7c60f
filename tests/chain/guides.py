"""The commands that README, CONTRIBUTING and the guides of `docs/` tell people to type."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).parents[2]
GUIDES = {path.name: path.read_text("utf-8")
          for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")}
PACKAGES = ("roots_pipeline", "tokenizer", "mixtures", "train")


_TYPED = r"(?:make|python|\.venv/bin/python|torchrun|bash|hf|export) "


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """Command lines of `sh` blocks and of indented lines, in their order; continued ones joined, without comments."""
    found = re.findall(rf"^```sh\n(.*?)^```|^    ({_TYPED}[^\n]*)$", text, re.DOTALL | re.MULTILINE)
    joined = "\n".join(fenced or indented for fenced, indented in found).replace("\\\n", " ")
    lines = (" ".join(re.sub(r"(^|\s)#.*", "", line).split()) for line in joined.splitlines())
    return [line for line in lines if line]


def ours(line: str) -> tuple[str, list[str]] | None:
    """Package and arguments of a command of ours; None for other programs, make, and modules of others."""
    words = shlex.split(line.partition(" > ")[0])
    if "-m" not in words or words[words.index("-m") + 1] not in PACKAGES:
        return None
    place = words.index("-m") + 1
    return words[place], words[place + 1 :]


def app_of(package: str) -> typer.Typer:
    """The commands of a package."""
    app: typer.Typer = importlib.import_module(f"{package}.__main__").app
    return app


def options_of(package: str, command: str) -> set[str]:
    """The long options of a command; none if there is no such command."""
    group: Any = typer.main.get_command(app_of(package))
    found = group.commands.get(command)
    return {option for parameter in found.params for option in parameter.opts} | {"--help"} if found else set()


def parse(package: str, arguments: list[str]) -> None:
    """Let a command's own parser read its arguments, and run nothing. Raises a UsageError for what it does not know."""
    group: Any = typer.main.get_command(app_of(package))
    name, command, rest = group.resolve_command(group.make_context(package, list(arguments)), list(arguments))
    command.make_context(name, rest)
