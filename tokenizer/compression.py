"""How well a tokenizer packs each language: bytes of text for each token, from the count table alone.

A token never crosses the border of a piece, so encoding each distinct piece once and weighting by its count
gives exactly what encoding the whole corpus would.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import text_buffers
from tokenizer.encode import Encoder


def bytes_per_token(slices: Iterable[pa.Table], encoder: Encoder) -> dict[str, float]:
    """Bytes per token by language, of the text that a count table stands for; higher is better."""
    totals: dict[str, list[int]] = {}
    for part in slices:
        pieces = pc.cast(part["piece"], pa.large_binary())
        counts = part["count"].to_numpy()
        tokens = counts * encoder.encode_pieces(pieces)[1]
        sizes = counts * np.diff(text_buffers(pieces)[1])
        names = part["language"].combine_chunks().dictionary_encode()
        numbers = names.indices.to_numpy()
        for number, name in enumerate(names.dictionary.to_pylist()):
            chosen = numbers == number
            total = totals.setdefault(name, [0, 0])
            total[0] += int(sizes[chosen].sum())
            total[1] += int(tokens[chosen].sum())
    return {name: size / tokens for name, (size, tokens) in sorted(totals.items()) if tokens}
