"""All commands of all packages understand the same options, each defined once."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
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


# What a shell starts when it completes a word: the script of a package, as an installer writes it.
SCRIPT = """#!{python}
import sys
from {package}.__main__ import main
sys.exit(main())
"""
COMPLETE = """
source <({script} --show-completion bash)
COMP_WORDS=({words}); COMP_CWORD={last}
_{name}_completion {script}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["rootbloom-corpus", "exp"], {"explore", "explain"}),
        (["rootbloom-tokenizer", "train", "--dry"], {"--dry-run"}),
        (["rootbloom-mixtures", "write", "--recipe", "mi"], {"mine.yaml", "mixed/"}),
        (["rootbloom-train", "run", "--recipe", "bloom-5"], {"bloom-560m"}),
    ],
)
def test_bash_completes(words: list[str], completed: set[str], project: Path, tmp_path: Path) -> None:
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]["scripts"]
    package = declared[words[0]].removesuffix(".__main__:main")
    script = tmp_path / words[0]
    script.write_text(SCRIPT.format(python=sys.executable, package=package))
    script.chmod(0o755)
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "mixed").mkdir()
    text = COMPLETE.format(script=script, words=" ".join(words), last=len(words) - 1, name=words[0].replace("-", "_"))
    environment = {**os.environ, "PYTHONPATH": str(project)}
    command = ["bash", "-c", text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == completed, done.stderr
