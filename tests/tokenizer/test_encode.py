"""The encoder against Hugging Face's, on everything that documents can hold."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from roots_pipeline.core.errors import TokenizerError
from tests.tokenizer import peer, plain
from tests.tokenizer.corpora import sample_texts, train_on_pieces
from tokenizer import encode as encode_module
from tokenizer.encode import Encoder
from tokenizer.export import tokenizer_files
from tokenizer.tokenizer_file import read_tokenizer

FRAGMENTS = (
    "</s>", "<s>", "<pad>", "<unk>", "the", " the", "  ", "\n\n", "\t", ".", "…", "。", "।", " la", "你好", "世界",
    "नमस्ते", "مرحبا", "é", "e\u0301", "🙂", "\x00", "\u200b", "\ufeff", "�", "a" * 70, "=" * 33, " " * 40, "0123456789",
    "def f(x):", "http://x.y/z?q=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def encoder(sample_file: str) -> Encoder:
    return Encoder.from_file(sample_file)


@pytest.fixture(scope="module")
def theirs(sample_file: str) -> Any:
    tokenizer = Tokenizer.from_file(sample_file)
    tokenizer.encode_special_tokens = True
    return tokenizer


def ids_of(theirs: Any, texts: list[str]) -> list[list[int]]:
    return [found.ids for found in theirs.encode_batch(texts, add_special_tokens=False)]


def as_lists(found: tuple[Any, Any]) -> tuple[list[int], list[int]]:
    return found[0].tolist(), found[1].tolist()


def fuzz(number: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(FRAGMENTS, k=chance.randrange(12))) for _ in range(number)]


def test_same_ids_as_hugging_face_on_fuzz(encoder: Encoder, theirs: Any) -> None:
    texts = fuzz(2500, 11)
    expected = ids_of(theirs, texts)
    ids, lengths = encoder.encode_column(pa.array(texts, pa.large_string()), append_eos=False)
    assert ids.dtype == np.int32 and lengths.dtype == np.int64
    assert [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])] == expected
    assert [encoder.encode(text).tolist() for text in texts[:300]] == expected[:300]
    assert sum("</s>" in text for text in texts) > 300 and not {0, 1, 2, 3} & set(ids.tolist())


def test_same_ids_as_hugging_face_on_the_sample(encoder: Encoder, theirs: Any, sample: Path) -> None:
    texts = sample_texts(sample)
    ids, lengths = encoder.encode_column(pa.chunked_array([texts[:50], texts[50:]], pa.large_string()), append_eos=True)
    expected = [[*found, 2] for found in ids_of(theirs, texts)]
    assert ids.tolist() == [number for found in expected for number in found]
    assert lengths.tolist() == list(map(len, expected))


@settings(deadline=None)
@given(st.text())
def test_same_ids_as_hugging_face_on_any_text(encoder: Encoder, theirs: Any, text: str) -> None:
    assert encoder.encode(text).tolist() == theirs.encode(text, add_special_tokens=False).ids


@settings(deadline=None)
@given(st.text() | st.sampled_from(FRAGMENTS))
def test_decoding_gives_the_text_back(encoder: Encoder, text: str) -> None:
    assert encoder.decode(encoder.encode(text)) == text


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_come_back(encoder: Encoder, data: bytes) -> None:
    assert encoder.decode_bytes(encoder.encode(data)) == data


@pytest.mark.parametrize("data", [b"\xff", b"\xe2\x80", b"a\x80b", b"\x00", b"", b"\xf0\x9f\x99"])
def test_lone_bytes(encoder: Encoder, data: bytes) -> None:
    column = pa.array([data, b"x", data], pa.large_binary())
    ids, lengths = encoder.encode_column(column, append_eos=True)
    parts = np.split(ids, np.cumsum(lengths)[:-1])
    assert [encoder.decode_bytes(part) for part in parts] == [data, b"x", data]
    assert all(part[-1] == 2 for part in parts)


def test_empty_texts_and_nulls(encoder: Encoder) -> None:
    ids, lengths = encoder.encode_column(pa.array(["", None, "a", ""], pa.large_string()), append_eos=True)
    assert lengths.tolist() == [1, 1, 2, 1] and (ids == 2).sum() == 4
    ids, lengths = encoder.encode_column(pa.array(["", None], pa.string()), append_eos=False)
    assert (ids.tolist(), lengths.tolist()) == ([], [0, 0])
    ids, lengths = encoder.encode_column(pa.array([], pa.large_string()), append_eos=True)
    assert (ids.size, lengths.size) == (0, 0)
    assert encoder.encode("").tolist() == []


def test_a_sliced_column_encodes_its_slice(encoder: Encoder) -> None:
    column = pa.array(["one two", "three", "four five six"], pa.large_string())
    ids, lengths = encoder.encode_column(column.slice(1, 1), append_eos=False)
    assert encoder.decode(ids) == "three" and len(lengths) == 1


def test_long_texts_are_encoded_block_by_block(
    encoder: Encoder, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = pa.array(sample_texts(sample)[:60], pa.large_string())
    expected = encoder.encode_column(column, append_eos=True)
    monkeypatch.setattr(encode_module, "_BLOCK", 3000)
    assert as_lists(encoder.encode_column(column, append_eos=True)) == as_lists(expected)


@pytest.mark.parametrize(("bits", "ids"), [(9, 1 << 14), (14, 2600), (20, 1 << 21)])
def test_a_full_cache_is_emptied(
    sample_file: str, sample: Path, monkeypatch: pytest.MonkeyPatch, bits: int, ids: int
) -> None:
    texts = sample_texts(sample)[:60]
    texts += ["".join(chr(0x100 + 37 * i * j % 5000) for j in range(9)) + " x" for i in range(400)]  # many ids a word
    column = pa.array(texts, pa.large_string())
    expected = Encoder.from_file(sample_file).encode_column(column, append_eos=True)
    monkeypatch.setattr(encode_module, "_CACHE_BITS", bits)
    monkeypatch.setattr(encode_module, "_CACHED_IDS", ids)
    small = Encoder.from_file(sample_file)
    for _ in range(2):
        assert as_lists(small.encode_column(column, append_eos=True)) == as_lists(expected)


@pytest.mark.parametrize("length", [30, 31, 32, 33, 34, 61, 62, 63, 64, 65, 66, 200, 5000])
@pytest.mark.parametrize("unit", ["a", "ab", "e\u0301", "你", "=", "aab", "\x00"])
def test_short_and_long_pieces(encoder: Encoder, theirs: Any, length: int, unit: str) -> None:
    text = (unit * length)[:length]
    assert encoder.encode(text).tolist() == theirs.encode(text, add_special_tokens=False).ids


def test_long_random_pieces_as_the_plain_twin(tmp_path: Path) -> None:
    chance = random.Random(2)
    vocabulary = train_on_pieces({bytes(chance.choices(b"abc", k=30)): chance.randint(1, 5) for _ in range(60)}, 500)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_files(vocabulary)["tokenizer.json"])
    encoder = Encoder.from_file(str(tmp_path / "tokenizer.json"))
    ranks = {(a, b): (rank, 260 + rank) for rank, (a, b) in enumerate(vocabulary.merges.tolist())}
    for length in (10, 31, 32, 33, 61, 62, 63, 64, 65, 300):
        piece = bytes(chance.choices(b"abc", k=length))
        assert encoder.encode(piece).tolist() == plain.encode(piece, vocabulary.tokens, ranks)


def test_ten_megabytes_of_one_character(tmp_path: Path) -> None:
    vocabulary = train_on_pieces({b"a" * 2**16: 1}, 272)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_files(vocabulary)["tokenizer.json"])
    encoder = Encoder.from_file(str(tmp_path / "tokenizer.json"))
    ids = encoder.encode("a" * 10_000_000)
    assert set(ids[:2400].tolist()) == {271} and len(vocabulary.tokens[271]) == 4096
    assert encoder.decode_bytes(ids) == b"a" * 10_000_000


def test_lone_surrogates_are_refused(encoder: Encoder) -> None:
    with pytest.raises(TokenizerError, match="no valid Unicode"):
        encoder.encode("a\ud800b")


def test_a_piece_that_is_too_long_leaves_the_cache_sound(
    sample_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, fresh = Encoder.from_file(sample_file), Encoder.from_file(sample_file)
    monkeypatch.setattr(encode_module, "_LONGEST_PIECE", 5000)
    column = pa.array(["first words of the text", "x" * 6000, "never reached"], pa.large_string())
    with pytest.raises(TokenizerError, match="has 6,000 bytes"):
        encoder.encode_column(column, append_eos=True)
    for text in ("other words", "first words of the text", "never reached"):
        assert encoder.encode(text).tolist() == fresh.encode(text).tolist()


def test_text_cannot_forge_a_control_token(tmp_path: Path) -> None:
    """Hugging Face's trainer makes merges that spell `</s>` and gives them its id; we leave them out."""
    tokenizer = peer.train(["a</s>"] * 20 + ["<pad>"] * 9, 300)
    path = str(tmp_path / "tokenizer.json")
    tokenizer.save(path)
    tokenizer.encode_special_tokens = True
    assert 3 in tokenizer.encode("x<pad>").ids
    encoder = Encoder.from_file(path)
    ids = encoder.encode("x<pad></s>")
    assert (ids > 3).all() and encoder.decode(ids) == "x<pad></s>"


def test_decoding(encoder: Encoder, theirs: Any) -> None:
    ids = [1, *encoder.encode("héllo"), 2]
    assert encoder.decode(ids) == theirs.decode(ids) == "héllo"
    assert encoder.decode(ids, skip_special_tokens=False) == "<s>héllo</s>"
    cut = encoder.encode("é".encode()[:1])
    assert encoder.decode(cut) == "\ufffd"
    for wrong in (-1, encoder.vocab_size):
        with pytest.raises(TokenizerError, match=f"id {wrong} is not in the vocabulary of 7,992"):
            encoder.decode([5, wrong])


def test_end_of_text(encoder: Encoder) -> None:
    assert (encoder.end_id, encoder.vocab_size) == (2, 7992)


def test_cached_and_fresh_encoders_agree(sample_file: str, sample: Path) -> None:
    warm = Encoder(read_tokenizer(sample_file))
    column = pa.array(sample_texts(sample)[:40], pa.large_string())
    first = warm.encode_column(column, append_eos=True)
    for _ in range(2):
        assert as_lists(warm.encode_column(column, append_eos=True)) == as_lists(first)
