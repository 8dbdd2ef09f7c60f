"""Columns of a batch as arrays: languages as numbers, so that settings by language become look-ups, and measures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roots_pipeline.rules.presets import load_data

DEFAULT = "default"

# Other names of the same language in CLD2, in ROOTS's data sets and in common use.
_SAME = {
    "zh-hant": "zht", "zh-tw": "zht", "zh-hk": "zht", "zh-hans": "zh", "zh-cn": "zh", "zhs": "zh",
    "iw": "he", "jw": "jv", "in": "id", "nb": "no", "tw": "ak", "fil": "tl",
}  # fmt: skip
_GROUP = re.compile(r"^(indic|niger-congo)-")

Setting = TypeVar("Setting")


@lru_cache(maxsize=4096)
def language_code(code: str) -> str:
    """The code that ROOTS uses for a language, from any of the codes in use for it: ISO 639-1 where it exists.

    `zh` is Chinese in simplified characters, `zht` in traditional ones.
    """
    lower = _GROUP.sub("", code.strip().lower().replace("_", "-"))
    head, _, tail = lower.partition("-")
    if len(head) == 3 and (short := _three_letters().get(head)) is not None:
        lower = f"{short}-{tail}" if f"{short}-{tail}" in _SAME else short
    elif len(head) == 3 and len(tail) == 4:  # a script, as in `fon-latn`
        lower = head
    return _SAME.get(lower, lower)


@lru_cache
def _three_letters() -> dict[str, str]:
    codes: dict[str, str] = load_data("language_codes")["three_letters"]
    return codes


def by_code(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings by language, by its code in ROOTS."""
    return {language_code(language): setting for language, setting in settings.items()}


def encode_languages(column: pa.Array) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The codes of the languages in a column, and the place of each row's among them. Null is `default`."""
    encoded = column.fill_null(DEFAULT).dictionary_encode()
    codes = [language_code(language) for language in encoded.dictionary.to_pylist()]
    return codes, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def floats(column: pa.Array) -> npt.NDArray[np.float64]:
    """A column of measures; nulls are NaN, which is neither below nor above anything."""
    values: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values
