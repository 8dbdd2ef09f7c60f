"""The files we write are the files Hugging Face would write, and load there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from tests.tokenizer.corpora import sample_texts, train_on_texts
from tokenizer.encode import Encoder
from tokenizer.export import FILES, tokenizer_files


@pytest.fixture(scope="module")
def folder(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("exported")
    for name, content in tokenizer_files(train_on_texts(sample_texts(sample), 7992)).items():
        (target / name).write_bytes(content)
    return target


def test_tokenizer_json_says_what_hugging_face_would_say(folder: Path, peer_on_sample: Any) -> None:
    assert json.loads((folder / "tokenizer.json").read_text("utf-8")) == json.loads(peer_on_sample.to_str())


def test_it_survives_a_round_trip_through_tokenizers(folder: Path) -> None:
    path = str(folder / "tokenizer.json")
    assert json.loads(Tokenizer.from_file(path).to_str()) == json.loads(Path(path).read_text("utf-8"))


def test_auto_tokenizer_loads_it(folder: Path) -> None:
    theirs = AutoTokenizer.from_pretrained(str(folder))
    encoder = Encoder.from_file(str(folder / "tokenizer.json"))
    assert len(theirs) == encoder.vocab_size == 7992
    names = (theirs.unk_token, theirs.bos_token, theirs.eos_token, theirs.pad_token)
    assert names == ("<unk>", "<s>", "</s>", "<pad>")
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (1, 2, 3)
    assert theirs.padding_side == "left"
    text = "Hello (world) , नमस्ते\n\n    return x…  你好，世界"
    assert theirs(text)["input_ids"] == encoder.encode(text).tolist()
    assert theirs.decode(theirs(text)["input_ids"]) == text
    assert theirs("a</s>")["input_ids"][-1] == 2  # a prompt may end a text, a training document may not


def test_equal_vocabularies_give_equal_bytes(folder: Path, sample: Path) -> None:
    again = tokenizer_files(train_on_texts(sample_texts(sample)[::-1], 7992))
    assert set(again) == set(FILES)
    for name, content in again.items():
        assert (folder / name).read_bytes() == content
