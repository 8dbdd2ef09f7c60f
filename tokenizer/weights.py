"""From counts per group (language, source) to one weighted count per piece.

A weight says how often each occurrence in a group counts (unlisted groups: once). Weights are turned into integers
once, in steps of 2^-20 and divided by what they have in common, so weighted counts are exact sums that
no order of addition can change, and equal weights change nothing at all. What a count of 1 has become is the
`scale`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.recipe import nearest
from tokenizer.counts_file import Group, group_numbers
from tokenizer.piece_table import Bytes, Int64, PieceTable

_STEPS = 1 << 20  # a weight of 1.0
_LARGEST = 1e6
_WEIGHT_LIMIT = 2.0**62  # of all occurrences together; sums below it are exact in int64


@dataclass(frozen=True, slots=True)
class WeightedPieces:
    """Distinct pieces data[offsets[i]:offsets[i + 1]] with int64 counts in units of 1 / `scale`; what `pruned` away."""

    data: Bytes
    offsets: Int64
    counts: Int64
    scale: int
    pruned: Pruned


@dataclass(slots=True)
class Pruned:
    """Rows of the count table that were too rare to be kept. `byte_pairs`: float64 (65536,), by left byte << 8 | right
    byte, the weighted count of each pair of bytes in them."""

    pieces: int = 0
    occurrences: int = 0
    byte_pairs: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(1 << 16))

    @property
    def error(self) -> float:
        """No pair of tokens was counted too low by more than this, a weight of 1 being 1: where two tokens meet, two
        bytes meet."""
        return float(self.byte_pairs.max())


def group_weights(
    groups: Iterable[Group], languages: Mapping[str, float], ratios: Mapping[Group, float]
) -> dict[Group, float]:
    """The weight of each group: that of its language times its ratio, both 1 if not given.

    Raises TokenizerError for a language that the corpus does not hold.
    """
    listed = sorted(groups)
    known = sorted({language for language, _ in listed})
    for name in languages:
        if name not in known:
            raise TokenizerError(f"language_weights: the corpus holds no '{name}'.", hint=nearest(name, known))
    return {group: languages.get(group[0], 1.0) * ratios.get(group, 1.0) for group in listed}


def integer_weights(weights: Mapping[Group, float]) -> tuple[dict[Group, int], int]:
    """Integer weights, and the scale: the integer that stands for a weight of 1.

    Raises TokenizerError for weights that are negative, too small, too large or no number, and if nothing is left.
    """
    for (language, source), weight in weights.items():
        if not (weight == 0 or 1 / _STEPS <= weight <= _LARGEST):
            raise TokenizerError(
                f"language_weights: {language} has the weight {weight} (in {source}).",
                hint="Give 0, or 0.000001 to 1,000,000.",
            )
    steps = {group: round(weight * _STEPS) for group, weight in weights.items()}
    if not any(steps.values()):
        raise TokenizerError("language_weights: every language has weight 0.", hint="Leave some text to train on.")
    common = math.gcd(_STEPS, *steps.values())
    return {group: value // common for group, value in steps.items()}, _STEPS // common


def weigh(
    slices: Iterable[pa.Table], weights: Mapping[Group, int], scale: int, minimum_count: int = 1
) -> WeightedPieces:
    """Add up the counts of each piece over all groups, times the group's integer weight.

    Rows (a piece in one group) counted less than `minimum_count` times are left out; that bounds memory, at the price
    of an error that is bounded and told.
    """
    table, pruned = PieceTable(), Pruned()
    total = 0.0
    for part in slices:
        names, numbers = group_numbers(part)
        each = np.array([weights[name] for name in names], np.int64)[numbers] if names else np.empty(0, np.int64)
        if minimum_count > 1:
            rare = part["count"].to_numpy() < minimum_count
            _note(pruned, part.filter(pa.array(rare)), each[rare], scale)
            part, each = part.filter(pa.array(~rare)), each[~rare]
        counts = part["count"].to_numpy()
        total += float(np.dot(counts.astype(np.float64), each.astype(np.float64)))
        if total >= _WEIGHT_LIMIT:
            raise TokenizerError(
                f"the weighted counts add up to over {_WEIGHT_LIMIT:.3g}.", hint="Use smaller language weights."
            )
        data, offsets = text_buffers(pc.cast(part["piece"], pa.large_binary()))
        table.add_pieces(data, offsets, np.zeros(len(part), np.int32), counts * each)
    arena, starts, _, _, summed = table.entries()
    offsets = np.append(starts, table.arena_bytes)
    return WeightedPieces(arena, offsets, np.ascontiguousarray(summed), scale, pruned)


def _note(pruned: Pruned, rare: pa.Table, weights: Int64, scale: int) -> None:
    counts = rare["count"].to_numpy()
    pruned.pieces += len(rare)
    pruned.occurrences += int(counts.sum())
    data, offsets = text_buffers(pc.cast(rare["piece"], pa.large_binary()))
    data = data[offsets[0] : offsets[-1]]
    each = np.repeat(counts * weights / scale, np.diff(offsets))
    inside = np.ones(len(data), np.bool_)
    inside[offsets[1:] - offsets[0] - 1] = False  # the last byte of a piece begins no pair in it
    pairs = data[:-1].astype(np.int64) << 8 | data[1:]
    pruned.byte_pairs += np.bincount(pairs[inside[:-1]], weights=each[:-1][inside[:-1]], minlength=1 << 16)
