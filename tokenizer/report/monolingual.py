"""A tokenizer of one language's own, to measure the shared one against.

Same recipe (pre-tokenizer, longest token, minimum frequency) and same rule for the size: the largest multiple of
`divisible_by` x `tensor_parallel` that is no more than asked for and that the language's text can fill with pairs that
occur at least twice. It learns from the language's rows of the count table and is measured on the same table as the
shared one. Small languages are a hard test: their own tokenizer knows nearly every word it is then measured on, unless
it is measured on other text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from roots_pipeline.core.storage import open_read
from roots_pipeline.core.tasks import Commit
from tokenizer.alphabet import FIRST_MERGE_ID, byte_ids
from tokenizer.bpe import Vocabulary, train_bpe
from tokenizer.config import TokenizerRecipe
from tokenizer.counts_file import group_numbers
from tokenizer.encode import Encoder
from tokenizer.report.measure import measure
from tokenizer.tokenizer_file import TokenizerFile
from tokenizer.weights import weigh


def measure_monolingual(
    commit: Commit, counts: str, text: str, language: str, recipe: TokenizerRecipe, largest: int
) -> dict[str, Any]:
    """Task: train on a language's rows of `counts` and measure on its rows of `text`.

    Result: the vocabulary size, and `Measured.facts` if the table `text` has that language. Writes nothing.
    """
    own = _rows(counts, language)
    pieces = weigh([own], dict.fromkeys(group_numbers(own)[0], 1), 1)
    step = recipe.divisible_by * recipe.tensor_parallel
    vocabulary = train_bpe(
        pieces.data, pieces.offsets, pieces.counts, max(largest // step * step, FIRST_MERGE_ID),
        minimum_frequency=max(2, recipe.minimum_frequency), max_token_length=recipe.max_token_length,
    )  # fmt: skip
    size = max(len(vocabulary) // step * step, min(len(vocabulary), step))
    encoder = Encoder(in_memory(vocabulary, recipe, size))
    measured = measure([_rows(text, language)], encoder).languages.get(language)
    return {"vocab_size": size, **(measured.facts() if measured else {})}


def in_memory(vocabulary: Vocabulary, recipe: TokenizerRecipe, size: int) -> TokenizerFile:
    """The first `size` tokens of a vocabulary, as its file would be read. For measuring: it has no special tokens."""
    merges = vocabulary.merges[: size - FIRST_MERGE_ID]
    made = FIRST_MERGE_ID + np.arange(len(merges))
    return TokenizerFile(
        vocabulary.tokens[:size], {}, byte_ids(), np.column_stack([merges, made]), recipe.patterns
    )


def _rows(counts: str, language: str) -> pa.Table:
    with open_read(counts) as handle:
        return pq.read_table(handle, filters=[("language", "==", language)]).combine_chunks()
