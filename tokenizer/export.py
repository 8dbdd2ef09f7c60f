"""Write a vocabulary as the files that Hugging Face's `tokenizers` and `transformers` load.

`tokenizer.json` has the pre-tokenizer's expressions to the letter; post-processor and decoder are ByteLevel, of whose
flags only `trim_offsets` has an effect. `tokenizer_config.json` and `special_tokens_map.json` name the special tokens.
Equal vocabularies give equal bytes.
"""

from __future__ import annotations

from typing import Any

import orjson

from tokenizer.alphabet import BEGIN_ID, END_ID, PADDING_ID, SPECIAL_TOKENS, UNKNOWN_ID, spell
from tokenizer.bpe import Vocabulary
from tokenizer.pretokenizers import BLOOM, Patterns

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_NAMED = {
    "unk_token": SPECIAL_TOKENS[UNKNOWN_ID],
    "bos_token": SPECIAL_TOKENS[BEGIN_ID],
    "eos_token": SPECIAL_TOKENS[END_ID],
    "pad_token": SPECIAL_TOKENS[PADDING_ID],
}
_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def tokenizer_files(vocabulary: Vocabulary, patterns: Patterns = BLOOM, reserved: int = 0) -> dict[str, bytes]:
    """File name -> content, for all of `FILES`. `reserved` tokens, `<reserved 0>` and so on, get the last ids."""
    return files_beside(tokenizer_json(vocabulary, patterns, reserved))


def files_beside(content: Any) -> dict[str, bytes]:
    """`FILES` for the content of a `tokenizer.json`."""
    config = {
        **_NAMED,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    contents = (content, config, _NAMED)
    return {name: _dump(content) for name, content in zip(FILES, contents, strict=True)}


def reserved_names(number: int) -> list[str]:
    """Names of reserved tokens. The space keeps them apart from every token that text can give: those have none."""
    return [f"<reserved {index}>" for index in range(number)]


def added_tokens(size: int, reserved: int) -> list[dict[str, Any]]:
    """The special tokens, and the reserved ones at the end of a vocabulary of `size` tokens."""
    named = [*enumerate(SPECIAL_TOKENS), *enumerate(reserved_names(reserved), size - reserved)]
    return [{"id": number, "content": name, **_FLAGS} for number, name in named]


def tokenizer_json(vocabulary: Vocabulary, patterns: Patterns = BLOOM, reserved: int = 0) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    specials = len(SPECIAL_TOKENS)
    spelled = [*SPECIAL_TOKENS, *map(spell, vocabulary.tokens[specials:]), *reserved_names(reserved)]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(len(spelled), reserved),
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                *({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
                  for pattern in patterns),
                _byte_level(add_prefix_space=False, trim_offsets=True, use_regex=False),
            ],
        },
        "post_processor": _byte_level(add_prefix_space=True, trim_offsets=False, use_regex=True),
        "decoder": _byte_level(add_prefix_space=True, trim_offsets=True, use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: number for number, text in enumerate(spelled)},
            "merges": [(spelled[left], spelled[right]) for left, right in vocabulary.merges.tolist()],
        },
    }


def _byte_level(**flags: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", **flags}


def _dump(content: Any) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
