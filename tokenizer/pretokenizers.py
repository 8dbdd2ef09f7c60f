"""The pre-tokenizers one can choose from, and the slow path for those that are not BLOOM's.

A pre-tokenizer is a list of regular expressions; each cuts what the one before has left into its matches and what lies
between ("Isolated"). Digits may be cut apart in a second step, whatever comes first. BLOOM's alone, with digits whole,
is walked by a kernel (`pretokenize`); all others are cut by Hugging Face's `tokenizers`, so that their pieces are by
construction those of the exported `tokenizer.json`, at some megabytes a second.

    pretokenizer: bloom, gpt2, gpt4, sentencepiece        digits: whole, single, threes

`sentencepiece` begins a piece at every space, for vocabularies with byte fallback (see `byte_fallback`).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Regex, pre_tokenizers

from roots_pipeline.core.errors import TokenizerError
from tokenizer.pretokenize import PATTERN

Patterns = tuple[str, ...]
Name = Literal["bloom", "gpt2", "gpt4", "sentencepiece"]
Digits = Literal["whole", "single", "threes"]

BLOOM: Patterns = (PATTERN,)
SENTENCEPIECE: Patterns = ("[ ▁][^ ▁]*",)
_PATTERNS: dict[Name, Patterns] = {
    "bloom": BLOOM,
    # As published with GPT-2 and, for GPT-4, with tiktoken's cl100k_base.
    "gpt2": (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",),
    "gpt4": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "sentencepiece": SENTENCEPIECE,
}
_DIGITS: dict[Digits, Patterns] = {"whole": (), "single": (r"\p{N}",), "threes": (r"\p{N}{1,3}",)}


def patterns_of(name: Name, digits: Digits = "whole") -> Patterns:
    """The regular expressions of a pre-tokenizer, in the order in which they cut."""
    return _PATTERNS[name] + _DIGITS[digits]


def choice_of(patterns: tuple[str | None, ...]) -> tuple[Name, Digits]:
    """The pre-tokenizer and the handling of digits that have these expressions. Raises TokenizerError."""
    for name in get_args(Name):
        for digits in get_args(Digits):
            if patterns_of(name, digits) == patterns:
                return name, digits
    found = patterns[0] if len(patterns) == 1 else patterns
    raise TokenizerError(f"the pre-tokenizer splits at {found!r}, which is none of those we know.")


class Splitter:
    """Cuts texts by any patterns. Slow: every piece is a Python object for a moment."""

    def __init__(self, patterns: Patterns) -> None:
        steps = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in patterns]
        self._steps = pre_tokenizers.Sequence(steps)

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text; joined they are the text again."""
        return [piece for piece, _ in self._steps.pre_tokenize_str(text)]

    def split_column(self, column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
        """(all pieces of all texts as `large_string`, how many pieces each text has). Raises TokenizerError for
        bytes that are no text."""
        try:
            texts = column.cast(pa.large_string()).to_pylist()
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise TokenizerError(f"the text is no valid UTF-8 ({error}).", hint="Repair or drop it.") from error
        split = [self.pieces(text or "") for text in texts]
        numbers = np.array([len(pieces) for pieces in split], np.int64)
        return pa.array([piece for pieces in split for piece in pieces], pa.large_string()), numbers
