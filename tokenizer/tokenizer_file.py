"""Read a `tokenizer.json` and make sure that it means what our encoder does: regular expressions, byte-level BPE.

Anything that would change the ids (a normalizer, an unknown expression, tokens outside the vocabulary) is refused
with a TokenizerError that names it; only JSON is read, never pickles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.storage import open_read
from tokenizer.alphabet import BYTE_CHARACTERS, unspell
from tokenizer.merge_table import LARGEST_ID
from tokenizer.pretokenizers import BLOOM, Patterns, choice_of

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "dropout": (None, 0, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
    "ignore_merges": (None, False),
}


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """A checked tokenizer. `tokens`: bytes by id (special tokens: their names; unused ids: empty);
    `special_ids`: by name; `byte_ids`: int32 (256,); `merges`: int64 (n, 3), left id, right id and new id by
    rank; `patterns`: the regular expressions of the pre-tokenizer."""

    tokens: list[bytes]
    special_ids: dict[str, int]
    byte_ids: npt.NDArray[np.int32]
    merges: npt.NDArray[np.int64]
    patterns: Patterns = BLOOM


def read_tokenizer(path: str) -> TokenizerFile:
    """Read and check a `tokenizer.json`. Raises TokenizerError if it is missing, broken or of another family.

    Merges that spell a special token are left out: with them, plain text could produce a control token.
    """
    return check_content_of(load_content(path), path)


def load_content(path: str) -> Any:
    """What a `tokenizer.json` holds, unchecked. Raises TokenizerError if it is missing or no JSON."""
    try:
        with open_read(path) as handle:
            return orjson.loads(handle.read())
    except FileNotFoundError as error:
        raise TokenizerError("there is no such tokenizer file.", where=path) from error
    except orjson.JSONDecodeError as error:
        raise TokenizerError(f"not valid JSON ({error}).", where=path, hint="Give a tokenizer.json.") from error


def is_library_model(content: Any) -> bool:
    """Whether the content is a vocabulary with byte fallback, which `byte_fallback` serves."""
    model = content.get("model") if isinstance(content, dict) else None
    return isinstance(model, dict) and model.get("type") == "BPE" and model.get("byte_fallback") is True


def check_content_of(content: Any, path: str) -> TokenizerFile:
    """The checked tokenizer of a file's content; errors as `read_tokenizer` raises them."""
    try:
        return _check(content)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TokenizerError(
            f"not a complete tokenizer.json ({type(error).__name__}: {error}).", where=path, hint="Export it again."
        ) from error
    except TokenizerError as error:
        raise TokenizerError(
            error.message, where=path, hint="Only byte-level BPE tokenizers of BLOOM's family can be used."
        ) from error


def _check(content: dict[str, Any]) -> TokenizerFile:
    model = content["model"]
    if model["type"] != "BPE":
        raise TokenizerError(f"the model is {model['type']}, not BPE.")
    for name, neutral in _NEUTRAL.items():
        if model.get(name) not in neutral:
            raise TokenizerError(f"the model sets {name} to {model[name]!r}, which would change ids.")
    if content["normalizer"] is not None:
        raise TokenizerError(f"the tokenizer has a normalizer ({content['normalizer']['type']}).")
    patterns = _check_pre_tokenizer(content["pre_tokenizer"])
    special_ids = {}
    for added in content["added_tokens"]:
        if not added["special"]:
            raise TokenizerError(f"the tokenizer adds {added['content']!r}, which is cut out of texts before BPE.")
        special_ids[added["content"]] = int(added["id"])
    vocab: dict[str, int] = {**model["vocab"], **special_ids}
    missing = [byte for byte, character in enumerate(BYTE_CHARACTERS) if character not in vocab]
    if missing:
        raise TokenizerError(f"the vocabulary lacks {len(missing)} of the 256 bytes, first {missing[0]:#04x}.")
    byte_ids = np.array([vocab[character] for character in BYTE_CHARACTERS], np.int32)
    merges = _merges(model["merges"], vocab, set(special_ids.values()))
    return TokenizerFile(_tokens(vocab, special_ids), special_ids, byte_ids, merges, patterns)


def _check_pre_tokenizer(found: Any) -> Patterns:
    steps = found["pretokenizers"] if found and found["type"] == "Sequence" else [found]
    kinds = [step["type"] if step else None for step in steps]
    if len(kinds) < 2 or kinds != ["Split"] * (len(kinds) - 1) + ["ByteLevel"]:
        raise TokenizerError(f"the pre-tokenizer is {kinds}, not ['Split', 'ByteLevel'].")
    *splits, byte_level = steps
    patterns = tuple(split["pattern"].get("Regex") for split in splits)
    choice_of(patterns)
    for split in splits:
        if split["behavior"] != "Isolated" or split["invert"]:
            raise TokenizerError(f"the pre-tokenizer's Split is {split['behavior']}, invert {split['invert']}.")
    if byte_level["add_prefix_space"] or byte_level.get("use_regex", True):
        raise TokenizerError("the pre-tokenizer's ByteLevel adds a space or splits once more (use_regex).")
    return patterns


def check_ids(vocab: dict[str, int]) -> None:
    """Raise TokenizerError for an id beyond what encoding can number: a list with a place for each id is made."""
    largest = max(vocab.values())
    if largest > LARGEST_ID:
        raise TokenizerError(f"id {largest:,} is beyond the {LARGEST_ID + 1:,} that encoding can number.")


def _tokens(vocab: dict[str, int], special_ids: dict[str, int]) -> list[bytes]:
    check_ids(vocab)
    tokens = [b""] * (max(vocab.values()) + 1)
    if len(set(vocab.values())) != len(vocab) or min(vocab.values()) < 0:
        raise TokenizerError("two tokens of the vocabulary have the same id, or an id is negative.")
    for text, number in vocab.items():
        tokens[number] = text.encode() if text in special_ids else unspell(text)
    return tokens


def _merges(entries: list[Any], vocab: dict[str, int], specials: set[int]) -> npt.NDArray[np.int64]:
    merges = np.empty((len(entries), 3), np.int64)
    for rank, entry in enumerate(entries):
        left, right = entry.split(" ") if isinstance(entry, str) else entry
        if left not in vocab or right not in vocab or left + right not in vocab:
            raise TokenizerError(f"merge {rank} ({left!r} + {right!r}) names a token that the vocabulary lacks.")
        merges[rank] = vocab[left], vocab[right], vocab[left + right]
    return merges[~np.isin(merges[:, 2], list(specials))]
