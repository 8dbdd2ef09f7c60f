"""Fixtures of the tokenizer's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tokenizer import peer
from tests.tokenizer.corpora import sample_texts


@pytest.fixture(scope="session")
def peer_on_sample(sample: Path) -> Any:
    """Hugging Face's tokenizer, trained by Hugging Face on the embedded corpus, 7,992 tokens."""
    return peer.train(sample_texts(sample), 7992)


@pytest.fixture(scope="session")
def sample_file(peer_on_sample: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its tokenizer.json."""
    path = str(tmp_path_factory.mktemp("peer") / "tokenizer.json")
    peer_on_sample.save(path)
    return path
