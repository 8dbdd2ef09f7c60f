"""A vocabulary in the manner of SentencePiece with byte fallback, as Gopher had (32,000 tokens): trained and applied by
Hugging Face's `tokenizers`.

Tokens are strings of characters; a space is written U+2581 and begins a piece; a character that has no token is written
as its UTF-8 bytes (`<0xE4>`). Nothing is normalised and no space is put in front, so decoding gives the text back (but
for a U+2581 of the text itself, which becomes a space). Ids: four special tokens, 256 bytes, then what was learned.

`tokenizers` cannot learn from counts: it reads the documents, and memory grows with their text. Draw a sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from roots_pipeline.core.errors import TokenizerError
from tokenizer.alphabet import FIRST_MERGE_ID, SPECIAL_TOKENS
from tokenizer.encode import Encoder, Int32, Int64
from tokenizer.export import added_tokens, reserved_names
from tokenizer.pretokenizers import SENTENCEPIECE, Patterns

_SPACE = "▁"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_PRE_TOKENIZER = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "never", "split": True}
_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
_ALPHABET_SHARE = 4  # at most a quarter of the vocabulary is single characters; the rest fall back on bytes
_BATCH = 512


def train_byte_fallback(
    texts: Iterable[str],
    vocab_size: int,
    *,
    minimum_frequency: int = 0,
    max_token_length: int | None = None,
    reserved: int = 0,
) -> dict[str, Any]:
    """The content of a `tokenizer.json`, with fewer than `vocab_size` tokens if the texts do not give as many."""
    learned = vocab_size - FIRST_MERGE_ID - reserved
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="never", split=True)
    trainer = trainers.BpeTrainer(
        vocab_size=learned, min_frequency=minimum_frequency, show_progress=False,
        limit_alphabet=max(1, learned // _ALPHABET_SHARE), max_token_length=max_token_length,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    model = orjson.loads(tokenizer.to_str())["model"]
    forbidden = {*SPECIAL_TOKENS, *_BYTES}
    found = [token for token in sorted(model["vocab"], key=model["vocab"].__getitem__) if token not in forbidden]
    names = [*SPECIAL_TOKENS, *_BYTES, *found, *reserved_names(reserved)]
    merges = [pair for pair in model["merges"] if "".join(pair) not in forbidden]
    return _content(names, merges, reserved)


def _content(names: Sequence[str], merges: Sequence[Sequence[str]], reserved: int) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(len(names), reserved),
        "normalizer": None,
        "pre_tokenizer": _PRE_TOKENIZER,
        "post_processor": None,
        "decoder": _DECODER,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": SPECIAL_TOKENS[0],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {name: number for number, name in enumerate(names)},
            "merges": [list(pair) for pair in merges],
        },
    }


class LibraryEncoder(Encoder):
    """The same face as `Encoder`, for a vocabulary with byte fallback; a slow path through `tokenizers`."""

    def __init__(self, content: dict[str, Any], path: str) -> None:
        try:
            strange = content["normalizer"] is not None or content["pre_tokenizer"] != _PRE_TOKENIZER
            vocab: dict[str, int] = content["model"]["vocab"]
            self._special_ids = {added["content"]: int(added["id"]) for added in content["added_tokens"]}
            names = [""] * (max(vocab.values()) + 1)
            for name, number in vocab.items():
                names[number] = name
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise TokenizerError(
                f"not a complete tokenizer.json ({type(error).__name__}: {error}).", where=path, hint="Export it again."
            ) from error
        if strange or any(byte not in vocab for byte in _BYTES):
            raise TokenizerError(
                "it has byte fallback, but not as we write it (a normalizer, another pre-tokenizer, missing bytes).",
                where=path, hint="Use one that `pretokenizer: sentencepiece` gave.",
            )  # fmt: skip
        self._library = Tokenizer.from_str(orjson.dumps(content).decode())
        self._library.encode_special_tokens = True
        self._tokens = [name.encode() if name in self._special_ids else _bytes_of(name) for name in names]
        self._special = set(self._special_ids.values())

    @property
    def tokens(self) -> list[bytes]:
        return self._tokens

    @property
    def special_ids(self) -> dict[str, int]:
        return self._special_ids

    @property
    def patterns(self) -> Patterns:
        return SENTENCEPIECE

    def encode_column(self, column: pa.Array | pa.ChunkedArray, append_eos: bool) -> tuple[Int32, Int64]:
        try:
            texts = [text or "" for text in column.cast(pa.large_string()).to_pylist()]
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise TokenizerError(f"the text is no valid UTF-8 ({error}).", hint="Repair or drop it.") from error
        end = [self.end_id] if append_eos else []
        ids, lengths = [np.empty(0, np.int32)], np.zeros(len(texts), np.int64)
        for start in range(0, len(texts), _BATCH):
            encoded = self._library.encode_batch_fast(texts[start : start + _BATCH], add_special_tokens=False)
            for number, encoding in enumerate(encoded, start):
                ids.append(np.array(encoding.ids + end, np.int32))
                lengths[number] = len(ids[-1])
        return np.concatenate(ids), lengths

    def encode_pieces(self, pieces: pa.Array | pa.ChunkedArray) -> tuple[Int32, Int64]:
        return self.encode_column(pieces, append_eos=False)


def _bytes_of(name: str) -> bytes:
    byte = _BYTE.fullmatch(name)
    return bytes([int(byte[1], 16)]) if byte else name.replace(_SPACE, " ").encode()
