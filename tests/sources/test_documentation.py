"""docs/sources.md: every example is a valid source, and every kind with all its keys is there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from roots_pipeline.config import CorpusRecipe
from roots_pipeline.sources import SOURCES


@pytest.fixture
def text(project: Path) -> str:
    return (project / "docs" / "sources.md").read_text("utf-8")


def test_every_kind_has_an_example_that_is_valid(text: str) -> None:
    entries = [entry for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for entry in yaml.safe_load(block)]
    recipe = CorpusRecipe.model_validate({"sources": entries})
    assert {source.kind for source in recipe.sources} == set(SOURCES)


def test_every_key_is_named(text: str) -> None:
    for kind, reader in SOURCES.items():
        assert f"| `{kind}` |" in text
        for field in fields(reader):
            if field.name not in ("source", "root"):
                assert re.search(rf"`{field.name}[`:]", text), f"{kind}: {field.name}"
