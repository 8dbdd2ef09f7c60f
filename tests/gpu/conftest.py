"""These tests need a GPU and are skipped without one; `bash tests/gpu/run.sh` runs them and the benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(scope="session")
def gpu() -> torch.device:
    return torch.device("cuda", 0)
