"""One run of the chain by the local engine in this process: what all other engines are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from roots_pipeline.engines.local import LocalEngine
from tests.engines.chain import RECIPE, Made, make


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "engines.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory, recipe: Path) -> Made:
    with LocalEngine(1) as engine:
        made = make(tmp_path_factory.mktemp("local"), engine, recipe)
    parts = {name.split("/")[0] + "/" + name.split("/")[1].split(".")[0] for name in made.files}
    assert {"corpus/documents", "corpus/rejected", "corpus/pairs", "corpus/quarantine", "tokenizer/counts"} <= parts
    assert any(name.endswith(".idx") for name in made.files)
    return made
