"""tiktoken gives the same ids, where it can; where it cannot, we say so."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest

from roots_pipeline.core.errors import TokenizerError
from tests.tokenizer.corpora import ALPHABETS, sample_texts, train_on_texts
from tokenizer.encode import Encoder
from tokenizer.export import tokenizer_files
from tokenizer.pretokenizers import patterns_of
from tokenizer.tiktoken_export import tiktoken_arguments, tiktoken_files


def test_same_ids_as_tiktoken(sample: Path, sample_file: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    theirs = tiktoken.Encoding(**tiktoken_arguments(sample_file))
    ours = Encoder.from_file(sample_file)
    chance = random.Random(3)
    fuzz = ["".join(chance.choice("".join(ALPHABETS) + "\u3000\xa0\r()|x1") for _ in range(60)) for _ in range(600)]
    for text in [*sample_texts(sample), *fuzz]:
        assert theirs.encode(text, disallowed_special=()) == ours.encode(text).tolist(), text
    assert theirs.n_vocab == 7992
    assert theirs.encode("a</s>", allowed_special="all")[-1] == 2


def test_gpt4s_expression_in_tiktoken(sample: Path, tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    patterns = patterns_of("gpt4")
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer_files(train_on_texts(sample_texts(sample)[:50], 600), patterns)["tokenizer.json"])
    theirs, ours = tiktoken.Encoding(**tiktoken_arguments(str(path))), Encoder.from_file(str(path))
    for text in [*sample_texts(sample)[:100], "It's 12345  \n\n x"]:
        assert theirs.encode(text, disallowed_special=()) == ours.encode(text).tolist()


def test_the_files(sample_file: str) -> None:
    files = tiktoken_files(sample_file)
    lines = [line.split() for line in files["tokenizer.tiktoken"].splitlines()]
    tokens = Encoder.from_file(sample_file).tokens
    assert {int(rank): base64.b64decode(token) for token, rank in lines} == dict(enumerate(tokens[4:], 4))
    assert json.loads(files["tiktoken.json"])["special_tokens"]["</s>"] == 2


def test_merges_that_tiktoken_cannot_follow(sample_file: str, tmp_path: Path) -> None:
    content = json.loads(Path(sample_file).read_text("utf-8"))
    merges = content["model"]["merges"]
    content["model"]["merges"] = merges[::-1]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="order of the merges"):
        tiktoken_arguments(str(path))
    content["model"]["merges"] = [*merges[:10], *merges[11:]]  # a token that nothing makes
    path.write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match=r"\d+ tokens do not encode to themselves"):
        tiktoken_arguments(str(path))
    path.write_bytes(tokenizer_files(train_on_texts(["a1"], 260), patterns_of("bloom", "single"))["tokenizer.json"])
    with pytest.raises(TokenizerError, match="with several"):
        tiktoken_arguments(str(path))
