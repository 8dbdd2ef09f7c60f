"""Language identification by a fastText model that the user has: lid.176, GlotLID, or one of their own.

    text ──▶ the two most probable labels of a supervised model, as language codes, with their probabilities

Labels such as `__label__fr`, `__label__fra_Latn` and `__label__zho_Hant` become the codes of ROOTS (`columns`). As in
ROOTS (code of the OSCAR filters), line ends become spaces and text is in lower case before it is looked at. The package
is an extra of rootbloom, `pip install 'rootbloom[fasttext]'`; models do not come with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.storage import hash_file
from roots_pipeline.rules.columns import language_code

# (text, count) to so many languages and probabilities, the most probable first
Predict = Callable[[str, int], list[tuple[str, float]]]

_PREFIX = "__label__"
_ALL = 100_000  # more labels than any model has


def model_fingerprint(path: str, where: str) -> str:
    """The hash of a model file. Raises RecipeError if it cannot be read, or if the package is not there."""
    try:
        importlib.import_module("fasttext")
    except ImportError as error:
        raise RecipeError("this needs the package 'fasttext', which is not installed.", where=where,
                          hint="Install rootbloom with its extra: pip install 'rootbloom[fasttext]'.") from error
    try:
        return hash_file(path)
    except OSError as error:
        raise RecipeError(f"the model '{path}' cannot be read ({error.strerror or error}).", where=where,
                          hint="Give the path of a fastText model, such as lid.176.bin.") from error


@lru_cache(maxsize=4)
def load_predictor(path: str, fingerprint: str) -> Predict:
    """A function that tells the most probable languages of a text, by the model file that has this fingerprint."""
    try:
        # Not its `predict`: that of some releases does not work with NumPy 2.
        model = importlib.import_module("fasttext").load_model(path).f
        model.predict("a\n", 1, 0.0, "replace")
    except (ValueError, RuntimeError, OSError) as error:
        raise RecipeError(f"this is no fastText model of languages ({error}).", where=path) from error

    def predict(text: str, count: int) -> list[tuple[str, float]]:
        found = model.predict(" ".join(text.split("\n")) + "\n", count, 0.0, "replace")
        return [(language_code(label.removeprefix(_PREFIX)), min(1.0, float(share))) for share, label in found]

    return predict


@lru_cache(maxsize=4)
def languages_of(path: str, fingerprint: str) -> frozenset[str]:
    """The languages that a model can tell."""
    return frozenset(code for code, _ in load_predictor(path, fingerprint)("a b c 1 2 3", _ALL))
