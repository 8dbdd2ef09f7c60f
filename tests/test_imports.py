"""Imports run one way: core <- everything, packages only import from the ones before them, nobody imports engines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("roots_pipeline", "tokenizer", "mixtures", "train")
# What a package may import besides itself.
BEFORE = {
    "roots_pipeline": (),
    "tokenizer": ("roots_pipeline.core", "roots_pipeline.text"),
    "mixtures": ("roots_pipeline.core", "roots_pipeline.text", "tokenizer"),
    "train": ("roots_pipeline.core", "tokenizer", "mixtures"),
}
# What a room of roots_pipeline may import from the project.
ROOMS = {
    "core": ("core",),
    "text": ("text",),
    "rules": ("core", "text", "rules"),
    "dedup": ("core", "text", "dedup"),
    "decontamination": ("core", "text", "sources", "report", "columns", "decontamination"),
    "sources": ("core", "text", "sources"),
    "report": ("core", "sources", "report"),
    "explorer": ("core", "rules", "report", "columns", "config", "explain", "pipeline", "stage_table", "explorer"),
    "engines": ("core", "engines"),
}


def modules(root: Path) -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if "sample" not in path.relative_to(root).parts:
                yield path


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(name: str) -> bool:
    return name.split(".")[0] in PACKAGES


def test_packages_only_import_from_the_ones_before_them(project: Path) -> None:
    for path in modules(project):
        package = path.relative_to(project).parts[0]
        for name in filter(ours, imports_of(path)):
            allowed = name.split(".")[0] == package or name.startswith(BEFORE[package]) or name == "roots_pipeline"
            if path.name == "__main__.py":
                allowed = allowed or name.startswith("roots_pipeline.engines")
            assert allowed, f"{path} imports {name}"


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_rooms_of_the_corpus_step(project: Path, room: str) -> None:
    files = sorted((project / "roots_pipeline" / room).rglob("*.py"))
    assert files
    for path in files:
        for name in filter(ours, imports_of(path)):
            parts = name.split(".")
            allowed = name in ("roots_pipeline", "roots_pipeline.__version__") or parts[1] in ROOMS[room]
            assert allowed, f"{path} imports {name}"


def test_only_commands_import_engines(project: Path) -> None:
    for path in modules(project):
        if path.name == "__main__.py" or "engines" in path.relative_to(project).parts:
            continue
        for name in imports_of(path):
            assert not name.startswith("roots_pipeline.engines"), f"{path} imports {name}"


def test_modules_are_short_and_say_what_they_are(project: Path) -> None:
    for path in modules(project):
        text = path.read_text("utf-8")
        assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
        assert text.count("\n") <= 400, f"{path} has {text.count(chr(10))} lines; one idea a module"
