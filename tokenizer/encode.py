# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Text -> token ids, and back, for every byte-level `tokenizer.json` of ours or of BLOOM's family.

Ids equal those of Hugging Face with `encode_special_tokens=True`: a document that contains the characters
`</s>` is encoded as these characters, so no text can forge a control token. The bytes are walked once; a piece
seen before is looked up in a cache, which is emptied when it is full, so memory stays bounded whatever the
corpus. Time is linear in the text, but for a logarithm in single pieces of more than 64 bytes.

BLOOM's pre-tokenizer is part of the kernel; other pre-tokenizers cut the text first, slowly (`pretokenizers`), and
a vocabulary with byte fallback is served by `byte_fallback.LibraryEncoder`, which `Encoder.from_file` also returns.
An `Encoder` is not to be shared between threads: give each its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.text.memory import kernel
from tokenizer.alphabet import END_ID, SPECIAL_TOKENS
from tokenizer.bytestring import read_only
from tokenizer.merge_piece import SHORT_PIECE, merge_long, merge_short, new_scratch
from tokenizer.merge_table import make_merge_table
from tokenizer.piece_table import COUNT, Table, clear_table, entry_of, new_table
from tokenizer.pretokenize import piece_end
from tokenizer.pretokenizers import BLOOM, Patterns, Splitter
from tokenizer.tokenizer_file import TokenizerFile, check_content_of, is_library_model, load_content

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_CACHED_PIECES = 1 << 19
_CACHED_LENGTH = 64  # bytes; longer pieces hardly come again
_CACHED_BYTES = 1 << 23
_CACHED_IDS = 1 << 22
_BLOCK = 1 << 24  # bytes of text encoded in one go; bounds the room set aside for ids
_LONGEST_PIECE = 2**31 - 1
_USUAL_PIECE = 1 << 12  # bytes; scratch for longer ones is given back after use
_NO_ID = -1
_TEXT, _PLACE, _WRITTEN, _OF_TEXT, _CACHED = range(5)


@kernel
def _encode(data, offsets, whole, end_id, merge_table, cache, cached_ids, scratch, cursor, out, lengths):
    """Encode the texts from `cursor` (text, place in it, ids written, ids of this text, cached ids) on. Each text is
    cut into pieces unless it is `whole` one.

    Returns 0 when all are done; stops at a piece for which `scratch` is too small and returns its length.
    """
    byte_ids = merge_table.byte_ids
    slots, entries, arena, used = cache
    written, cached = cursor[_WRITTEN], cursor[_CACHED]
    for text in range(cursor[_TEXT], offsets.size - 1):
        before = written - cursor[_OF_TEXT]
        place = max(offsets[text], cursor[_PLACE])
        stop = offsets[text + 1]
        while place < stop:
            end = stop if whole else piece_end(data, place, stop)
            length = end - place
            if length == 1:
                out[written] = byte_ids[data[place]]
                written += 1
            elif length > _CACHED_LENGTH:
                if length > scratch.ids.size:
                    cursor[_TEXT] = text
                    cursor[_PLACE] = place
                    cursor[_WRITTEN] = written
                    cursor[_OF_TEXT] = written - before
                    cursor[_CACHED] = cached
                    return length
                written = merge_long(merge_table, data, place, length, scratch, out, written)
            else:
                entry = entry_of(slots, entries, arena, used, data, place, length, 0)
                if entry < 0 or cached + _CACHED_LENGTH > cached_ids.size:
                    clear_table(slots, used)
                    cached = 0
                    entry = entry_of(slots, entries, arena, used, data, place, length, 0)
                known = entries[entry, COUNT]
                if known == 0:
                    if length > SHORT_PIECE:
                        number = merge_long(merge_table, data, place, length, scratch, cached_ids, cached) - cached
                    else:
                        number = merge_short(merge_table, data, place, length, cached_ids[cached:], scratch.ranks)
                    known = (cached << 8) | number
                    entries[entry, COUNT] = known
                    cached += number
                for index in range(known >> 8, (known >> 8) + (known & 0xFF)):
                    out[written] = cached_ids[index]
                    written += 1
            place = end
        if end_id != _NO_ID:
            out[written] = end_id
            written += 1
        lengths[text] = written - before
        cursor[_OF_TEXT] = 0
    cursor[_WRITTEN] = written
    cursor[_CACHED] = cached
    return np.int64(0)


class Encoder:
    """Encodes and decodes with one tokenizer; keeps a cache between calls."""

    def __init__(self, tokenizer: TokenizerFile) -> None:
        self._tokenizer = tokenizer
        self._merges = make_merge_table(tokenizer.byte_ids, tokenizer.merges)
        self._cache: Table = new_table(_CACHED_PIECES, _CACHED_BYTES)
        self._cached_ids = np.empty(_CACHED_IDS, np.int32)
        self._cached = 0  # places of `_cached_ids` in use
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
        end_id = self.end_id if append_eos else _NO_ID
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
        return self._encode_blocks(*text_buffers(pieces), True, _NO_ID)

    def _encode_blocks(
        self, data: npt.NDArray[np.uint8], offsets: Int64, whole: bool, end_id: int
    ) -> tuple[Int32, Int64]:
        ids, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        first = 0
        while first < len(offsets) - 1:
            last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1)
            block_ids, block_lengths = self._encode(data, offsets[first : last + 1], whole, end_id)
            ids.append(block_ids)
            lengths.append(block_lengths)
            first = last
        return np.concatenate(ids), np.concatenate(lengths)

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
        out = np.empty(int(offsets[-1] - offsets[0]) + texts, np.int32)
        lengths = np.empty(texts, np.int64)
        cursor = np.array([0, -1, 0, 0, self._cached], np.int64)
        data, offsets = read_only(data), read_only(offsets)
        scratch = self._scratch
        while True:
            length = _encode(
                data, offsets, whole, end_id, self._merges, self._cache, self._cached_ids, scratch, cursor, out,
                lengths,
            )  # fmt: skip
            self._cached = int(cursor[_CACHED])
            if length == 0:
                return out[: cursor[_WRITTEN]].copy(), lengths
            if length > _LONGEST_PIECE:
                raise TokenizerError(
                    f"a piece without any space or punctuation has {length:,} bytes.", hint="Drop that text."
                )
            scratch = new_scratch(length)
