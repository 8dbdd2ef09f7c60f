"""The language column as numbers, so that settings by language become array look-ups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DEFAULT = "default"


def encode_languages(column: pa.Array) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The distinct languages, and the place of each row's language among them. Null is the language `default`."""
    encoded = column.fill_null(DEFAULT).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
