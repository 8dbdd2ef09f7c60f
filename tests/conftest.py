"""Fixtures that every test folder may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the checkout."""
    return PROJECT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real text and golden numbers beside the checkout; the test is skipped without it."""
    folder = PROJECT.parent / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip("needs the folder of real text and golden numbers beside the checkout")
    return folder


@pytest.fixture(scope="session")
def sample() -> Path:
    """The embedded sample corpus."""
    return PROJECT / "roots_pipeline" / "sample"


@pytest.hookimpl(tryfirst=True)  # before the plugin reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several processes (`-n 2 --dist loadgroup`) what shares costly fixtures stays together."""
    for item in items:
        folder = item.path.parent.name
        item.add_marker(pytest.mark.xdist_group(folder if folder in ("chain", "tokenizer") else str(item.path)))
