"""The first ids of every BLOOM-family vocabulary: four special tokens, then the 256 bytes.

A `tokenizer.json` is text, so each byte is written as one printable character: printable Latin-1 bytes stand
for themselves, the others take the code points from U+0100 on, in byte order (the byte alphabet of GPT-2).
Bytes get ids in the order of those characters, which is how Hugging Face's trainer numbers them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<pad>")
UNKNOWN_ID, BEGIN_ID, END_ID, PADDING_ID = range(4)


def _byte_characters() -> tuple[str, ...]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printable else next(spare)) for byte in range(256))


# BYTE_CHARACTERS[byte] is the character a byte is written as; CHARACTER_BYTES is its inverse.
BYTE_CHARACTERS = _byte_characters()
CHARACTER_BYTES = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}

# Bytes by ascending id: the first one has id len(SPECIAL_TOKENS).
BYTES_BY_ID = sorted(range(256), key=BYTE_CHARACTERS.__getitem__)
FIRST_MERGE_ID = len(SPECIAL_TOKENS) + 256


def byte_ids() -> npt.NDArray[np.int32]:
    """Shape (256,): the id of each byte."""
    ids = np.empty(256, np.int32)
    ids[BYTES_BY_ID] = np.arange(len(SPECIAL_TOKENS), FIRST_MERGE_ID, dtype=np.int32)
    return ids


def spell(token: bytes) -> str:
    """A token as `tokenizer.json` writes it."""
    return "".join(map(BYTE_CHARACTERS.__getitem__, token))


def unspell(text: str) -> bytes:
    """The bytes of a token as `tokenizer.json` writes it; KeyError for a character outside the alphabet."""
    return bytes(map(CHARACTER_BYTES.__getitem__, text))
