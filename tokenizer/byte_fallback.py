"""A vocabulary in the manner of SentencePiece with byte fallback, as Gopher had (32,000 tokens), applied by Hugging
Face's `tokenizers`; `byte_fallback_training` makes one.

Tokens are strings of characters; a space is written U+2581 and begins a piece; a character that has no token is written
as its UTF-8 bytes (`<0xE4>`). Nothing is normalised and no space is put in front, so decoding gives the text back (but
for a U+2581 of the text itself, which becomes a space).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from tokenizers import Tokenizer

from roots_pipeline.core.errors import TokenizerError
from tokenizer.encode import Encoder, Int32, Int64
from tokenizer.pretokenizers import SENTENCEPIECE, Patterns
from tokenizer.tokenizer_file import check_ids

SPACE = "▁"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PRE_TOKENIZER = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": True}
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BATCH = 512


class LibraryEncoder(Encoder):
    """The same face as `Encoder`, for a vocabulary with byte fallback; a slow path through `tokenizers`."""

    def __init__(self, content: dict[str, Any], path: str) -> None:
        try:
            strange = content["normalizer"] is not None or content["pre_tokenizer"] != PRE_TOKENIZER
            vocab: dict[str, int] = content["model"]["vocab"]
            check_ids(vocab)
            self._special_ids = {added["content"]: int(added["id"]) for added in content["added_tokens"]}
            names = [""] * (max(vocab.values()) + 1)
            for name, number in vocab.items():
                names[number] = name
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise TokenizerError(
                f"not a complete tokenizer.json ({type(error).__name__}: {error}).", where=path, hint="Export it again."
            ) from error
        if strange or any(byte not in vocab for byte in BYTES):
            raise TokenizerError(
                "it has byte fallback, but not as we write it (a normalizer, another pre-tokenizer, missing bytes).",
                where=path, hint="Use one that `pretokenizer: sentencepiece` gave.",
            )  # fmt: skip
        try:
            self._library = Tokenizer.from_str(orjson.dumps(content).decode())
        except Exception as error:  # the library raises nothing more precise
            raise TokenizerError(
                f"`tokenizers` cannot read it ({error}).", where=path, hint="Export it again."
            ) from error
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
    return bytes([int(byte[1], 16)]) if byte else name.replace(SPACE, " ").encode()
