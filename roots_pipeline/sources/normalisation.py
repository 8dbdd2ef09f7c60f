"""Unicode normalisation and repair of texts, where a recipe asks for it. Off by default: ROOTS and Gopher keep
the text as it is, and normal form C already changes what a tokenizer sees (see `normalise_text` of a source).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from importlib import import_module
from typing import Literal

import pyarrow as pa


def normalised(batch: pa.RecordBatch, how: Literal["nfc", "ftfy"]) -> pa.RecordBatch:
    """The batch with its texts in normal form C (UAX #15), after ftfy's repairs if asked for."""
    texts = batch.column("text").to_pylist()
    repair: Callable[[str], str] = import_module("ftfy").fix_text if how == "ftfy" else _composed
    changed = [repair(text) for text in texts]
    if all(new is old for new, old in zip(changed, texts, strict=True)):
        return batch
    # A repair may bring forth half a surrogate pair, which UTF-8 cannot hold.
    safe = [text.encode("utf-8", "replace").decode() for text in changed]
    columns = [pa.array(safe, pa.large_string()) if field.name == "text" else batch.column(field.name)
               for field in batch.schema]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _composed(text: str) -> str:
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
