"""Which documents are for training and which are held out.

Three ways. `range` and `comma` cut the file by position, as the published programs do; positions follow the
order of the corpus, so what is held out is the end of each file and not a fair sample of it. `hash` holds
out documents by a hash of their id: a fair sample, and a document keeps its side when the corpus around it
changes.

`range_boundaries` and `comma_boundaries` return the published numbers even where those are nonsense
(negative or falling); `check_boundaries` refuses to use such numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from mixtures.blend import normalise
from mixtures.order import Variant
from roots_pipeline.core.errors import MixtureError

SIDES = ("train", "validation", "test")


def range_boundaries(text: str, sequences: int) -> tuple[int, int]:
    """`"0:0.95"` of N sequences: (round(0 x N), round(0.95 x N)), halves to even (BigScience).

    Raises MixtureError if the text is not two numbers or the end is not in (0, 1].
    """
    parts = text.split(":")
    try:
        start, end = (float(part) for part in parts)
    except ValueError as error:
        raise MixtureError(f"'{text}' is not a range.", hint="Write start:end, such as 0:0.95.") from error
    if not 0 < end <= 1:
        raise MixtureError(f"the range '{text}' ends at {end}.", hint="A range ends above 0 and at most at 1.")
    if not math.isfinite(start):
        raise MixtureError(f"the range '{text}' starts at {start}.", hint="A range starts at a number, such as 0.")
    return round(start * sequences), round(end * sequences)


def comma_boundaries(text: str, sequences: int, variant: Variant) -> list[tuple[int, int] | None]:
    """`"969,30,1"` of N sequences: (from, to) of train, valid and test; None for a part that core leaves out.

    BigScience rounds each part and then moves every boundary by the sum of the rounding errors;
    megatron-core rounds the running sums. Raises MixtureError for what the programs refuse.
    """
    if variant == "megatron_core":
        return _core_boundaries(text, sequences)
    separator = "," if "," in text else "/"
    parts = [*_numbers(text, text.split(separator)), 0.0, 0.0][:3]
    total = sum(parts)
    if not 0 < total < math.inf:
        raise MixtureError(f"the parts of '{text}' add up to {total}.", hint="Give at least one part above 0.")
    ends = list(accumulate((round(part / total * sequences) for part in parts), initial=0))
    surplus = ends[-1] - sequences
    bounds = [0, *(end - surplus for end in ends[1:])]
    return list(pairwise(bounds))


def _core_boundaries(text: str, sequences: int) -> list[tuple[int, int] | None]:
    parts = _numbers(text, re.findall(r"[.0-9]+", text))
    if len(parts) > 3 or not sum(parts) > 0:
        raise MixtureError(f"'{text}' is not a split.", hint="Give one to three parts, not all 0, such as 969,30,1.")
    shares = [float(share) for share in normalise([*parts, 0.0, 0.0][:3])]
    ends = list(accumulate(shares, initial=0.0))
    return [
        None if share == 0 else (round(start * sequences), round(end * sequences))
        for share, start, end in zip(shares, ends[:-1], ends[1:], strict=True)
    ]


def _numbers(text: str, parts: Sequence[str]) -> list[float]:
    try:
        numbers = [float(part) for part in parts]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError("not finite")
    except ValueError as error:
        raise MixtureError(f"'{text}' is not a split.", hint="Write numbers, such as 969,30,1.") from error
    return numbers


def check_boundaries(bounds: tuple[int, int], sequences: int, text: str) -> range:
    """The sequences from..to, or MixtureError if they do not lie in order inside 0..N."""
    start, end = bounds
    if not 0 <= start <= end <= sequences:
        raise MixtureError(
            f"the split '{text}' of {sequences} sequences runs from {start} to {end}.",
            hint="Choose shares that rise from 0 to 1, or the split method hash.",
        )
    return range(start, end)


def held_out(hashes: npt.NDArray[np.uint64], share: float) -> npt.NDArray[np.bool_]:
    """Which documents are held out: those whose hash lies in the lowest `share` of all hashes.

    A group trains on at least one document, and if it has two, it holds out at least one: that with the lowest hash.
    """
    if not 0 <= share < 1:
        raise MixtureError(f"a share of {share} cannot be held out.", hint="Choose a share from 0 up to 1.")
    mask: npt.NDArray[np.bool_] = hashes.astype(np.float64) < share * 2.0**64
    if share > 0 and len(hashes) > 1:
        mask[np.argmin(hashes)] = True
    if mask.all() and len(hashes):
        mask[np.argmax(hashes)] = False
    return mask


def sides_by_hash(hashes: npt.NDArray[np.uint64], share: float, test: float) -> dict[str, npt.NDArray[np.bool_]]:
    """Masks of `train`, `validation` (the lowest hashes) and `test` (the highest).

    A group trains on at least one document; a test has at least one if validation leaves two.
    """
    if not 0 <= share + test < 1:
        raise MixtureError(
            f"shares of {share} for validation and {test} for a test cannot be held out.",
            hint="Leave something to train on: choose shares that add up to less than 1.",
        )
    validation = held_out(hashes, share)
    tested = np.zeros(len(hashes), bool)
    if test > 0:
        places = np.flatnonzero(~validation)
        # The share is one of all documents: those with the lowest hashes are gone already.
        tested[places] = hashes[places].astype(np.float64) >= (1 - test) * 2.0**64
        if len(places) > 1 and not tested.any():
            tested[places[np.argmax(hashes[places])]] = True
        if tested[places].all() and len(places):
            tested[places[np.argmin(hashes[places])]] = False
    return {"train": ~validation & ~tested, "validation": validation, "test": tested}


def sequences_of(
    split: Mapping[str, Any], side: str, prefix: str, sequences: int, variant: Variant
) -> npt.NDArray[np.int64]:
    """The sequences of `train`, `validation` or `test` in a group's files, rising.

    `split` is the split section of a recipe: `method` hash (with `share`, and `test` if there is one), range (with
    `train`, `validation`, perhaps `test`) or comma (with `parts`). Only hash reads a file,
    `<prefix>.documents.parquet`.
    """
    if side not in SIDES:
        raise MixtureError(f"there is no side '{side}' of a split.", hint=f"Use {', '.join(SIDES)}.")
    if split["method"] == "hash":
        column = pq.read_table(f"{prefix}.documents.parquet", columns=["split_hash"]).column(0)
        return np.flatnonzero(sides_by_hash(column.to_numpy(), split["share"], split.get("test", 0.0))[side])
    if split["method"] == "comma":
        text = split["parts"]
        bounds = comma_boundaries(text, sequences, variant)[SIDES.index(side)] or (0, 0)
    elif split.get(side) is None:
        return np.empty(0, np.int64)
    else:
        text = split[side]
        bounds = range_boundaries(text, sequences)
    chosen = check_boundaries(bounds, sequences, text)
    return np.arange(chosen.start, chosen.stop)
