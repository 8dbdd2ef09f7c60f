"""The documentation names commands, options and settings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from tokenizer.__main__ import app
from tokenizer.config import TokenizerRecipe


@pytest.fixture(scope="module")
def page(project: Path) -> str:
    return (project / "docs" / "tokenizer.md").read_text("utf-8")


def test_commands_and_options(page: str) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^python -m tokenizer (\w+) ?([^#\n]*)", page, re.M)
    assert {name for name, _ in lines} >= {"train", "report", "compare", "encode", "export"}
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[\w-]+", rest)) <= known, (name, rest)
    for option in re.findall(r"`(--[\w-]+)", page):
        assert option in {known for parameter in commands["report"].params for known in parameter.opts}


def test_settings(page: str) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.S)
    settings = yaml.safe_load(block)["tokenizer"]
    assert TokenizerRecipe(**settings).sizes.spare == 200
    left_out = set(TokenizerRecipe.model_fields) - set(settings) - {"existing"}
    assert not left_out, "the page does not speak of these"
