"""Reading tokenizer files: BLOOM's family is taken in all its spellings, everything else is refused by name."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roots_pipeline.core.errors import TokenizerError
from tokenizer.tokenizer_file import read_tokenizer

Content = dict[str, Any]


@pytest.fixture(scope="module")
def content(sample_file: str) -> str:
    return Path(sample_file).read_text("utf-8")


def write(path: Path, content: str, change: Callable[[Content], object]) -> str:
    value = json.loads(content)
    change(value)
    target = path / "tokenizer.json"
    target.write_text(json.dumps(value), "utf-8")
    return str(target)


def test_merges_as_pairs_and_as_strings(sample_file: str, content: str, tmp_path: Path) -> None:
    def as_strings(value: Content) -> None:
        value["model"]["merges"] = [" ".join(pair) for pair in value["model"]["merges"]]

    pairs = read_tokenizer(sample_file)
    strings = read_tokenizer(write(tmp_path, content, as_strings))
    assert np.array_equal(pairs.merges, strings.merges) and pairs.tokens == strings.tokens
    assert pairs.special_ids == {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 3}
    assert pairs.tokens[2] == b"</s>" and len(pairs.tokens) == 7992 and len(pairs.merges) == 7732


def test_a_merge_given_twice_has_its_later_rank(content: str, tmp_path: Path) -> None:
    def twice(value: Content) -> None:
        value["model"]["merges"].append(value["model"]["merges"][0])

    from tokenizers import Tokenizer

    from tokenizer.encode import Encoder

    path = write(tmp_path, content, twice)
    theirs, text = Tokenizer.from_file(path), "the cat sat on the mat, न्यायालय में"
    assert Encoder.from_file(path).encode(text).tolist() == theirs.encode(text).ids


def pre_tokenizer(value: Content) -> list[Content]:
    steps: list[Content] = value["pre_tokenizer"]["pretokenizers"]
    return steps


CHANGES: dict[str, tuple[Callable[[Content], object], str]] = {
    "regex": (lambda v: pre_tokenizer(v)[0]["pattern"].update(Regex=r"\s+"), "splits at"),
    "string": (lambda v: pre_tokenizer(v)[0].update(pattern={"String": " "}), "splits at None"),
    "behaviour": (lambda v: pre_tokenizer(v)[0].update(behavior="Removed"), "Split is Removed"),
    "invert": (lambda v: pre_tokenizer(v)[0].update(invert=True), "invert True"),
    "prefix": (lambda v: pre_tokenizer(v)[1].update(add_prefix_space=True), "adds a space"),
    "gpt2": (lambda v: pre_tokenizer(v)[1].update(use_regex=True), "splits once more"),
    "more": (lambda v: pre_tokenizer(v).append({"type": "Digits"}), "'Digits'"),
    "none": (lambda v: v.update(pre_tokenizer=None), "pre-tokenizer is"),
    "normalizer": (lambda v: v.update(normalizer={"type": "NFKC"}), "NFKC"),
    "model": (lambda v: v["model"].update(type="Unigram"), "not BPE"),
    "dropout": (lambda v: v["model"].update(dropout=0.1), "dropout to 0.1"),
    "prefix of parts": (lambda v: v["model"].update(continuing_subword_prefix="##"), "continuing_subword_prefix"),
    "fallback": (lambda v: v["model"].update(byte_fallback=True), "byte_fallback"),
    "whole words": (lambda v: v["model"].update(ignore_merges=True), "ignore_merges"),
    "added": (lambda v: v["added_tokens"][0].update(special=False), "cut out of texts"),
    "byte": (lambda v: v["model"]["vocab"].pop("Ā"), "lacks 1 of the 256 bytes"),
    "same id": (lambda v: v["model"]["vocab"].update(the=300), "same id"),
    "merge": (lambda v: v["model"]["merges"].append(["qqq", "zzz"]), "the vocabulary lacks"),
    "no merges": (lambda v: v["model"].pop("merges"), "not a complete tokenizer.json"),
    "character": (lambda v: v["model"]["vocab"].update({"你": 9000}), "not a complete tokenizer.json"),
    "list": (lambda v: v.update(model=[1]), "not a complete tokenizer.json"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_would_change_ids_is_refused(content: str, tmp_path: Path, name: str) -> None:
    change, message = CHANGES[name]
    path = write(tmp_path, content, change)
    with pytest.raises(TokenizerError, match=message) as caught:
        read_tokenizer(path)
    assert caught.value.where == path


def test_files_that_are_no_json(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(TokenizerError, match="no such tokenizer file"):
        read_tokenizer(str(path))
    path.write_text('{"model": ')
    with pytest.raises(TokenizerError, match="not valid JSON"):
        read_tokenizer(str(path))
    path.write_text("[]")
    with pytest.raises(TokenizerError, match="not a complete"):
        read_tokenizer(str(path))


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was loaded",)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(TokenizerError, match="not valid JSON"):
        read_tokenizer(str(path))
