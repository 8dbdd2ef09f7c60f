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
