"""Hugging Face's `tokenizers`, set up as BLOOM's: the independent truth for merges and ids."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

PATTERN = " ?[^(\\s|[.,!?…。，、।۔،])]+"
SPECIALS = ["<unk>", "<s>", "</s>", "<pad>"]


def split_only() -> Any:
    """BLOOM's pre-tokenizer without the byte alphabet, which would hide the characters."""
    return pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")


def train(texts: Iterable[str], vocab_size: int, **options: Any) -> Any:
    """A tokenizer trained by Hugging Face's trainer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split_only(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **options,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def model_of(tokenizer: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """(vocabulary, merges) as its file would hold them."""
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]
