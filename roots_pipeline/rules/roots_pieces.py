"""SentencePiece models by path: the words of Chinese and the input of language models. Loaded when first needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.storage import hash_file
from roots_pipeline.rules.roots_normalisation import normalise

Encode = Callable[[str], list[str]]

# SentencePiece takes about a hundred bytes a character for one call, so longer texts go in several.
CHARACTERS_AT_ONCE = 1_000_000


def optional_package(name: str, where: str) -> ModuleType:
    """A package of the extra `perplexity`. Raises RecipeError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RecipeError(
            f"this needs the package '{name}', which is not installed.",
            where=where,
            hint="Install rootbloom with its extra: pip install 'rootbloom[perplexity]'.",
        ) from error


def model_fingerprint(path: str, where: str) -> str:
    """The hash of a model file. Raises RecipeError if it cannot be read."""
    try:
        return hash_file(path)
    except OSError as error:
        raise RecipeError(
            f"the model '{path}' cannot be read ({error.strerror or error}).",
            where=where,
            hint="Models do not come with rootbloom: give the path of one that you have.",
        ) from error


@lru_cache(maxsize=16)
def load_pieces(path: str, fingerprint: str, where: str) -> Encode:
    """A function from a text to its pieces, by the model file that has this fingerprint."""
    package = optional_package("sentencepiece", where)
    try:
        processor = package.SentencePieceProcessor(model_file=path)
    except (OSError, RuntimeError) as error:
        raise RecipeError(f"this is no SentencePiece model ({error}).", where=path) from error

    def encode(text: str) -> list[str]:
        pieces: list[str] = []
        for start in range(0, len(text), CHARACTERS_AT_ONCE):
            pieces += processor.encode_as_pieces(text[start : start + CHARACTERS_AT_ONCE])
        return pieces

    return encode


def with_pieces(texts: pa.Array, chosen: npt.NDArray[np.bool_], encode: Encode, glue_lines: bool) -> pa.Array:
    """The texts, the chosen ones replaced by the pieces of their normal form in lower case, one a line."""

    def replacements() -> Iterator[str]:
        for text in texts.filter(pa.array(chosen)).to_pylist():
            yield "\n".join(encode(normalise(text, lower_case=True, glue_lines=glue_lines)))

    return pc.replace_with_mask(texts, pa.array(chosen), pa.array(replacements(), pa.large_string()))
