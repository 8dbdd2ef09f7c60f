"""Train a vocabulary with byte fallback (see `byte_fallback`) with Hugging Face's `tokenizers`.

Ids: four special tokens, 256 bytes, then what was learned, then reserved slots. `tokenizers` cannot learn from counts:
it reads the documents, and memory grows with their text. Draw a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tokenizer.alphabet import FIRST_MERGE_ID, SPECIAL_TOKENS
from tokenizer.byte_fallback import BYTES, PRE_TOKENIZER, SPACE
from tokenizer.export import added_tokens, reserved_names

_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
_ALPHABET_SHARE = 4  # at most a quarter of the vocabulary is single characters; the rest fall back on bytes


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
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="never", split=True)
    trainer = trainers.BpeTrainer(
        vocab_size=learned, min_frequency=minimum_frequency, show_progress=False,
        limit_alphabet=max(1, learned // _ALPHABET_SHARE), max_token_length=max_token_length,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    model = orjson.loads(tokenizer.to_str())["model"]
    forbidden = {*SPECIAL_TOKENS, *BYTES}
    found = [token for token in sorted(model["vocab"], key=model["vocab"].__getitem__) if token not in forbidden]
    names = [*SPECIAL_TOKENS, *BYTES, *found, *reserved_names(reserved)]
    merges = [pair for pair in model["merges"] if "".join(pair) not in forbidden]
    return _content(names, merges, reserved)


def _content(names: Sequence[str], merges: Sequence[Sequence[str]], reserved: int) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(len(names), reserved),
        "normalizer": None,
        "pre_tokenizer": PRE_TOKENIZER,
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
