"""From counts per language to one weighted count per piece.

A weight says how often each occurrence in a language counts (unlisted languages: once). Weights are turned into
integers once, in steps of 2^-20 and divided by what they have in common, so weighted counts are exact sums that
no order of addition can change, and equal weights change nothing at all. What a count of 1 has become is the
`scale`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.recipe import nearest
from tokenizer.piece_table import Bytes, Int64, PieceTable

_STEPS = 1 << 20  # a weight of 1.0
_LARGEST = 1e6
_WEIGHT_LIMIT = 2.0**62  # of all occurrences together; sums below it are exact in int64


@dataclass(frozen=True, slots=True)
class WeightedPieces:
    """Distinct pieces data[offsets[i]:offsets[i + 1]] with int64 counts in units of 1 / `scale`."""

    data: Bytes
    offsets: Int64
    counts: Int64
    scale: int


def integer_weights(weights: Mapping[str, float], languages: Iterable[str]) -> tuple[dict[str, int], int]:
    """Integer weights of all languages, and the scale: the integer that stands for a weight of 1.

    Raises TokenizerError for weights that are negative, too small, too large or no number, for a language that
    the corpus does not hold, and if nothing is left.
    """
    known = sorted(languages)
    for name, weight in weights.items():
        if name not in known:
            raise TokenizerError(f"language_weights: the corpus holds no '{name}'.", hint=nearest(name, known))
        if not (weight == 0 or 1 / _STEPS <= weight <= _LARGEST):
            raise TokenizerError(
                f"language_weights: {name} has the weight {weight}.", hint="Give 0, or 0.000001 to 1,000,000."
            )
    steps = {name: round(weights.get(name, 1.0) * _STEPS) for name in known}
    if not any(steps.values()):
        raise TokenizerError("language_weights: every language has weight 0.", hint="Leave some text to train on.")
    common = math.gcd(_STEPS, *steps.values())
    return {name: value // common for name, value in steps.items()}, _STEPS // common


def weigh(slices: Iterable[pa.Table], weights: Mapping[str, int], scale: int) -> WeightedPieces:
    """Add up the counts of each piece over all languages, times the language's integer weight."""
    table = PieceTable()
    total = 0.0
    for part in slices:
        names = part["language"].combine_chunks().dictionary_encode()
        factors = np.array([weights[name] for name in names.dictionary.to_pylist()], np.int64)
        counts = part["count"].to_numpy()
        each = factors[names.indices.to_numpy()] if len(part) else np.empty(0, np.int64)
        total += float(np.dot(counts.astype(np.float64), each.astype(np.float64)))
        if total >= _WEIGHT_LIMIT:
            raise TokenizerError(
                f"the weighted counts add up to over {_WEIGHT_LIMIT:.3g}.", hint="Use smaller language weights."
            )
        data, offsets = text_buffers(pc.cast(part["piece"], pa.large_binary()))
        table.add_pieces(data, offsets, np.zeros(len(part), np.int32), counts * each)
    arena, starts, _, _, summed = table.entries()
    return WeightedPieces(arena, np.append(starts, table.arena_bytes), np.ascontiguousarray(summed), scale)
