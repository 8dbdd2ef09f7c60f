"""A tiny tokenizer in the files that an export copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.train.scenario import VOCABULARY

WORDS = 90  # six rows fewer than the embedding


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    assert WORDS < VOCABULARY
    names = ["<unk>", "<s>", "</s>", "<pad>", *(f"w{number}" for number in range(WORDS - 4))]
    words = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save(str(folder / "tokenizer.json"))
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **special}))
    return folder


@pytest.fixture(autouse=True)
def _denormals() -> Iterator[None]:
    """A training process flushes them to zero; other tests of this process must not notice."""
    yield
    torch.set_flush_denormal(False)
