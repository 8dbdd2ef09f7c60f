"""The two sizes of a vocabulary, and which of them are possible.

`vocab_size` counts the tokens that exist: 4 special ones, 256 bytes, the merges. `padded_vocab_size` counts the
rows of the embedding, a multiple of `divisible_by` x `tensor_parallel`, so that each of the `tensor_parallel`
parts has a length that the hardware likes; the spare rows are never produced. BLOOM: 250,680 tokens in 250,880
= 490 x (128 x 4) rows. The two are often mixed up: 250,680 itself is no multiple of 128.
"""

from __future__ import annotations

from dataclasses import dataclass

from roots_pipeline.core.errors import TokenizerError
from tokenizer.alphabet import FIRST_MERGE_ID, SPECIAL_TOKENS


@dataclass(frozen=True, slots=True)
class VocabularySizes:
    """Sizes that fit together."""

    vocab_size: int
    padded_vocab_size: int
    reserved: int = 0  # the last ids of the vocabulary, kept for later use

    @property
    def spare(self) -> int:
        """Rows of the embedding that no token uses."""
        return self.padded_vocab_size - self.vocab_size

    @property
    def merges(self) -> int:
        """Merges that training has to find."""
        return self.vocab_size - self.reserved - FIRST_MERGE_ID


def fit_sizes(
    vocab_size: int,
    *,
    divisible_by: int = 128,
    tensor_parallel: int = 4,
    padded_vocab_size: int | None = None,
    reserved: int = 0,
) -> VocabularySizes:
    """The sizes of a vocabulary, with the smallest possible padding if `padded_vocab_size` is None.

    Raises TokenizerError, naming sizes that would do, if the vocabulary cannot hold the bytes, if the padded
    size is smaller than the vocabulary, or if it is not a multiple of `divisible_by` x `tensor_parallel`.
    """
    if divisible_by < 1 or tensor_parallel < 1:
        raise TokenizerError(
            f"divisible_by ({divisible_by}) and tensor_parallel ({tensor_parallel}) must be at least 1.",
            hint="BLOOM used 128 and 4.",
        )
    if vocab_size < FIRST_MERGE_ID + reserved:
        kept = f", and {reserved:,} are reserved" if reserved else ""
        raise TokenizerError(
            f"vocab_size {vocab_size:,} is too small for a byte-level vocabulary.",
            hint=f"It takes at least {FIRST_MERGE_ID + reserved:,}: {len(SPECIAL_TOKENS)} special tokens and "
            f"256 bytes{kept}.",
        )
    step = divisible_by * tensor_parallel
    smallest = -(-vocab_size // step) * step
    if padded_vocab_size is None:
        return VocabularySizes(vocab_size, smallest, reserved)
    rule = f"a multiple of {divisible_by:,} x {tensor_parallel:,} = {step:,} (divisible_by x tensor_parallel)"
    below, above = padded_vocab_size // step * step, -(-padded_vocab_size // step) * step
    if padded_vocab_size < vocab_size:
        fitting = f", or vocab_size to at most {below:,}" if below >= FIRST_MERGE_ID else ""
        raise TokenizerError(
            f"padded_vocab_size {padded_vocab_size:,} is smaller than vocab_size {vocab_size:,}.",
            hint=f"Set padded_vocab_size to {smallest:,} ({rule}){fitting}.",
        )
    if below != above:
        nearest = f"{below:,} or {above:,}" if below >= vocab_size else f"{above:,}"
        raise TokenizerError(
            f"padded_vocab_size {padded_vocab_size:,} is not {rule}.",
            hint=f"Set it to {nearest}; {vocab_size:,} tokens need at least {smallest:,}.",
        )
    return VocabularySizes(vocab_size, padded_vocab_size, reserved)


def check_merges_found(found: int, sizes: VocabularySizes, minimum_frequency: int) -> None:
    """Raise TokenizerError if the corpus gave fewer merges than the vocabulary needs."""
    if found >= sizes.merges:
        return
    rarity = f" that occur at least {minimum_frequency:,} times" if minimum_frequency > 1 else ""
    raise TokenizerError(
        f"vocab_size {sizes.vocab_size:,} needs {sizes.merges:,} merges, "
        f"but the corpus holds only {found:,} distinct ones{rarity}.",
        hint=f"Use more text, or set vocab_size to at most {FIRST_MERGE_ID + found + sizes.reserved:,}.",
    )
