"""Where the vocabulary of a run comes from: learned from counts, learned from documents, or taken over from a file.

In: the recipe and what was counted. Out: the files to write, by name, and facts for the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from roots_pipeline.core.errors import TokenizerError
from tokenizer.alphabet import BYTE_CHARACTERS, FIRST_MERGE_ID, SPECIAL_TOKENS, byte_ids
from tokenizer.bpe import train_bpe
from tokenizer.byte_fallback_training import train_byte_fallback
from tokenizer.checkpoint import MergeCheckpoint
from tokenizer.config import TokenizerRecipe
from tokenizer.constraint import check_merges_found
from tokenizer.count import read_documents
from tokenizer.counts_file import Group, read_counts
from tokenizer.export import files_beside, tokenizer_files
from tokenizer.memory import memory_sentence
from tokenizer.tokenizer_file import TokenizerFile, load_content, read_tokenizer
from tokenizer.weights import group_weights, integer_weights, weigh

Learned = tuple[dict[str, bytes], dict[str, Any]]


def learn_byte_level(
    recipe: TokenizerRecipe,
    counts: str,
    ratios: Mapping[Group, float],
    advance: Callable[[int], None],
    say: Callable[[str], None],
    checkpoint: MergeCheckpoint | None,
) -> Learned:
    """Merges from a count table, on from a checkpoint if there is one. Raises TokenizerError if it holds too few."""
    earlier = read_earlier(recipe)
    weights, scale = integer_weights(group_weights(ratios, recipe.language_weights, ratios))
    pieces = weigh(read_counts(counts), weights, scale, recipe.minimum_count)
    say(memory_sentence(pieces, recipe.vocab_size))
    done = FIRST_MERGE_ID

    def on_progress(tokens: int) -> None:
        nonlocal done
        advance(tokens - done)
        done = tokens

    sizes = recipe.sizes
    vocabulary = train_bpe(
        pieces.data,
        pieces.offsets,
        pieces.counts,
        FIRST_MERGE_ID + sizes.merges,
        minimum_frequency=recipe.minimum_frequency * scale,
        max_token_length=recipe.max_token_length,
        earlier=earlier,
        checkpoint=checkpoint,
        on_progress=on_progress,
    )
    check_merges_found(len(vocabulary.merges), sizes, recipe.minimum_frequency)
    facts: dict[str, Any] = {"pieces": len(pieces.counts)}
    if recipe.minimum_count > 1:
        pruned = pieces.pruned
        facts["pruned"] = {
            "pieces": pruned.pieces, "occurrences": pruned.occurrences,
            "pair_count_error_at_most": round(pruned.error, 3),
            "count_of_last_merge": float(vocabulary.counts[-1]) / scale if len(vocabulary.counts) else 0.0,
        }  # fmt: skip
    return tokenizer_files(vocabulary, recipe.patterns, recipe.reserved), facts


def learn_byte_fallback(recipe: TokenizerRecipe, documents: Sequence[str]) -> Learned:
    """A vocabulary in the manner of SentencePiece from the texts of these shards. Raises TokenizerError if they give
    too few tokens."""
    content = train_byte_fallback(
        _texts(documents),
        recipe.vocab_size,
        minimum_frequency=recipe.minimum_frequency,
        max_token_length=recipe.max_token_length,
        reserved=recipe.reserved,
    )
    check_merges_found(len(content["model"]["vocab"]) - FIRST_MERGE_ID - recipe.reserved, recipe.sizes,
                       recipe.minimum_frequency)  # fmt: skip
    return files_beside(content), {"pieces": len(content["model"]["merges"])}


def take_over(path: str) -> Learned:
    """The files of a tokenizer that exists already; its ids stay what they are."""
    return files_beside(load_content(path)), {"pieces": 0, "imported": path}


def read_earlier(recipe: TokenizerRecipe) -> TokenizerFile | None:
    """The vocabulary to go on from. Raises TokenizerError if it is not one of ours that is smaller."""
    path = recipe.continue_from
    if path is None:
        return None
    earlier = read_tokenizer(path)
    ours = {name: number for number, name in enumerate(SPECIAL_TOKENS)}
    numbered = np.array_equal(earlier.merges[:, 2], FIRST_MERGE_ID + np.arange(len(earlier.merges)))
    named = {name: earlier.special_ids.get(name) for name in SPECIAL_TOKENS} == ours
    if not (numbered and named and np.array_equal(earlier.byte_ids, byte_ids())):
        raise TokenizerError(
            f"its ids are not numbered as ours ({len(SPECIAL_TOKENS)} special tokens, {len(BYTE_CHARACTERS)} bytes, "
            "merges), so training cannot go on from it.",
            where=path, hint="Use it as it is (import), or train from the start.",
        )  # fmt: skip
    if earlier.patterns != recipe.patterns:
        raise TokenizerError("it has another pre-tokenizer than this recipe.", where=path, hint="Set pretokenizer.")
    if len(earlier.merges) > recipe.sizes.merges:
        raise TokenizerError(
            f"it has {len(earlier.merges):,} merges, more than the {recipe.sizes.merges:,} asked for.", where=path,
            hint=f"Set vocab_size to at least {FIRST_MERGE_ID + len(earlier.merges) + recipe.reserved:,}.",
        )  # fmt: skip
    return earlier


def _texts(documents: Sequence[str]) -> Iterator[str]:
    for path in documents:
        for batch in read_documents(path, ("text",)):
            yield from batch.column("text").to_pylist()
