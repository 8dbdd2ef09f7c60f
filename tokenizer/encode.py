# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Text -> token ids, and back, for every byte-level `tokenizer.json` of ours or of BLOOM's family.

Ids equal those of Hugging Face with `encode_special_tokens=True`: a document that contains the characters
`</s>` is encoded as these characters, so no text can forge a control token. The loop is in `encode_texts`; a piece
seen before is looked up in a cache, which is emptied when it is full, so memory stays bounded whatever the corpus. Time
is linear in the text, but for a logarithm in single pieces of over 62 bytes.

BLOOM's pre-tokenizer is part of the kernel; other pre-tokenizers cut the text first, slowly (`pretokenizers`), and
a vocabulary with byte fallback is served by `byte_fallback.LibraryEncoder`, which `Encoder.from_file` also returns.
An `Encoder` is not to be shared between threads: give each its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import TokenizerError
from tokenizer.alphabet import END_ID, SPECIAL_TOKENS
from tokenizer.bytestring import read_only
from tokenizer.encode_texts import CACHE_FULL, DONE, NO_ID, SPARE_IDS, WRITTEN, encode_texts, new_batch
from tokenizer.merge_piece import new_scratch
from tokenizer.merge_table import make_merge_table
from tokenizer.pretokenizers import BLOOM, Patterns, Splitter
from tokenizer.tokenizer_file import TokenizerFile, check_content_of, is_library_model, load_content
from tokenizer.word_cache import clear_cache, new_cache

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_CACHE_BITS = 20  # 2^20 lines of 64 bytes
_CACHED_IDS = 1 << 21
_BLOCK = 1 << 24  # bytes of text encoded in one go; bounds the room set aside for ids
_LONGEST_PIECE = 2**31 - 1
_USUAL_PIECE = 1 << 12  # bytes; scratch for longer ones is given back after use


class Encoder:
    """Encodes and decodes with one tokenizer; keeps a cache between calls."""

    def __init__(self, tokenizer: TokenizerFile) -> None:
        self._tokenizer = tokenizer
        self._merges = make_merge_table(tokenizer.byte_ids, tokenizer.merges)
        self._cache = new_cache(_CACHE_BITS, _CACHED_IDS)
        self._batch = new_batch()
        self._scratch = new_scratch(_USUAL_PIECE)
        self._special = set(tokenizer.special_ids.values())
        self._splitter = None if tokenizer.patterns == BLOOM else Splitter(tokenizer.patterns)

    @staticmethod
    def from_file(path: str) -> Encoder:
        """Load a `tokenizer.json`. Raises TokenizerError if it is none that we can use."""
        content = load_content(str(path))
        if is_library_model(content):
            from tokenizer.byte_fallback import LibraryEncoder  # which is an Encoder itself

            return LibraryEncoder(content, str(path))
        return Encoder(check_content_of(content, str(path)))

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each token by id (special tokens: their names; unused ids: empty)."""
        return self._tokenizer.tokens

    @property
    def special_ids(self) -> dict[str, int]:
        """Special tokens by name; text never encodes to one."""
        return self._tokenizer.special_ids

    @property
    def patterns(self) -> Patterns:
        """The regular expressions of the pre-tokenizer."""
        return self._tokenizer.patterns

    @property
    def vocab_size(self) -> int:
        """Tokens that exist; ids are below it."""
        return len(self.tokens)

    @property
    def end_id(self) -> int:
        """The id of `</s>`, which ends each document. Raises TokenizerError if the tokenizer has none."""
        name = SPECIAL_TOKENS[END_ID]
        if name not in self.special_ids:
            raise TokenizerError(f"the tokenizer has no special token {name} to end documents with.")
        return self.special_ids[name]

    def encode(self, text: str | bytes) -> Int32:
        """Token ids, int32. Bytes may be any; a string must not hold lone surrogates (TokenizerError)."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str | bytes]) -> list[Int32]:
        """The token ids of each text of a list; see `encode`."""
        try:
            raw = [text.encode() if isinstance(text, str) else text for text in texts]
        except UnicodeEncodeError as error:
            raise TokenizerError(f"the text is no valid Unicode ({error}).", hint="Repair or drop it.") from error
        ids, lengths = self.encode_column(pa.array(raw, pa.large_binary()), append_eos=False)
        return np.split(ids, np.cumsum(lengths)[:-1]) if raw else []

    def encode_column(self, column: pa.Array | pa.ChunkedArray, append_eos: bool) -> tuple[Int32, Int64]:
        """Ids of all texts of an Arrow column, one after the other, and how many each has.

        Returns (ids int32, lengths int64 of len(column)). `append_eos` ends each text with `</s>`, also an
        empty one; its id is counted in the lengths. Nulls are empty texts.
        """
        end_id = self.end_id if append_eos else NO_ID
        if self._splitter is None:
            return self._encode_blocks(*text_buffers(column), False, end_id)
        pieces, numbers = self._splitter.split_column(column)
        ids, lengths = self.encode_pieces(pieces)
        totals = np.diff(np.concatenate([[0], np.cumsum(lengths)])[np.concatenate([[0], np.cumsum(numbers)])])
        if append_eos:
            ids = np.insert(ids, np.cumsum(totals), np.int32(end_id))
            totals += 1
        return ids, totals

    def encode_pieces(self, pieces: pa.Array | pa.ChunkedArray) -> tuple[Int32, Int64]:
        """Ids of pieces as a pre-tokenizer cut them, as `encode_column` does of texts, without cutting them again."""
        return self._encode_blocks(*text_buffers(pieces), True, NO_ID)

    def _encode_blocks(
        self, data: npt.NDArray[np.uint8], offsets: Int64, whole: bool, end_id: int
    ) -> tuple[Int32, Int64]:
        ids, lengths = list[Int32](), list[Int64]()
        first = 0
        while first < len(offsets) - 1:
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1)
            block_ids, block_lengths = self._encode(data, offsets[first : last + 1], whole, end_id)
            ids.append(block_ids)
            lengths.append(block_lengths)
            first = last
        return _joined(ids, np.int32), _joined(lengths, np.int64)

    def decode_bytes(self, ids: Iterable[int] | Int32, *, skip_special_tokens: bool = True) -> bytes:
        """The bytes that the ids stand for. Raises TokenizerError for an id that no token has."""
        tokens = self.tokens
        numbers = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64).ravel()
        wrong = numbers[(numbers < 0) | (numbers >= len(tokens))]
        if wrong.size:
            raise TokenizerError(f"id {wrong[0]} is not in the vocabulary of {len(tokens):,} tokens.")
        skipped = self._special if skip_special_tokens else ()
        return b"".join(tokens[number] for number in numbers.tolist() if number not in skipped)

    def decode(self, ids: Iterable[int] | Int32, *, skip_special_tokens: bool = True) -> str:
        """The text that the ids stand for; bytes that are no UTF-8 (a cut character) become U+FFFD."""
        return self.decode_bytes(ids, skip_special_tokens=skip_special_tokens).decode(errors="replace")

    def _encode(self, data: npt.NDArray[np.uint8], offsets: Int64, whole: bool, end_id: int) -> tuple[Int32, Int64]:
        texts = len(offsets) - 1
        out = np.empty(int(offsets[-1] - offsets[0]) + texts + SPARE_IDS, np.int32)
        lengths = np.empty(texts, np.int64)
        cursor = np.array([0, offsets[0], 0, 0], np.int64)
        self._batch.ahead[:] = 0
        data, offsets = read_only(data), read_only(offsets)
        scratch = self._scratch
        while True:
            status, short = encode_texts(
                data, offsets, whole, end_id, self._merges, self._cache, self._batch, scratch, cursor, out, lengths
            )
            if status == DONE:
                return out[: cursor[WRITTEN]].copy(), lengths
            if status == CACHE_FULL:
                clear_cache(self._cache)
            elif short > _LONGEST_PIECE:
                raise TokenizerError(
                    f"a piece without any space or punctuation has {short:,} bytes.", hint="Drop that text."
                )
            else:
                scratch = new_scratch(short)


def _joined(parts: list[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])
