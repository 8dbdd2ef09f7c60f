"""The arithmetic of sampling: how much of each group (language, source) a tokenizer should see.

In: bytes of each group. Out: bytes that are wanted of it; how they become a ratio says `ratios`.

BLOOM's rule, as its scripts have it: the sizes of the languages are water-filled to a total, the share of a language is
proportional to (filled size / total) ** 0.3, and what a language gets of the budget is water-filled over its sources.
To water-fill is to pour a total into vessels of given sizes at one common level: small ones fill up, large ones are all
filled to the same height (max-min fairness).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.recipe import nearest
from tokenizer.counts_file import Group

Key = TypeVar("Key", bound=Hashable)


def water_fill(sizes: Mapping[Key, float], total: float) -> dict[Key, float]:
    """How `total` is shared out: min(size, level) of each, with the level at which they add up to it.

    If all sizes together are no more than `total`, each is taken whole.
    """
    left, filled = total, {}
    ascending = sorted(sizes, key=lambda key: sizes[key])
    for place, key in enumerate(ascending):
        filled[key] = min(float(sizes[key]), max(left, 0.0) / (len(ascending) - place))
        left -= filled[key]
    return {key: filled[key] for key in sizes}


def power(sizes: Mapping[Key, float], alpha: float) -> dict[Key, float]:
    """Shares in proportion to size ** alpha, adding up to 1; what is empty gets 0."""
    total = sum(sizes.values())
    raised = {key: (size / total) ** alpha if size > 0 else 0.0 for key, size in sizes.items()}
    whole = math.fsum(raised.values())
    return {key: value / whole for key, value in raised.items()}


def bloom(
    sizes: Mapping[Group, int], budget: float, alpha: float, filled_to: float | None, *, repeat: bool = False
) -> dict[Group, float]:
    """Bytes wanted of each group by BLOOM's rule; `filled_to` None: half of all text, as BLOOM's 800 GB were.

    A language that is smaller than its share gives all it has. If text may `repeat`, it gives its share all the same,
    each source in proportion to its size.
    """
    languages: dict[str, float] = {}
    for (language, _), size in sizes.items():
        languages[language] = languages.get(language, 0.0) + size
    total = sum(languages.values()) / 2 if filled_to is None else filled_to
    shares = power(water_fill(languages, total), alpha)
    wanted: dict[Group, float] = {}
    for language, share in shares.items():
        own = {group: float(size) for group, size in sizes.items() if group[0] == language}
        if repeat and share * budget > languages[language]:
            wanted |= {group: share * budget * size / languages[language] for group, size in own.items()}
        else:
            wanted |= water_fill(own, share * budget)
    return wanted


def proportional(sizes: Mapping[Group, int], budget: float) -> dict[Group, float]:
    """Bytes wanted of each group: every byte equally likely."""
    total = sum(sizes.values())
    return {group: budget * size / total for group, size in sizes.items()}


def explicit(
    sizes: Mapping[Group, int],
    weights: Mapping[str, float],
    *,
    leave_out: bool = False,
    patterns: Mapping[str, Sequence[str]] | None = None,
) -> dict[Group, float]:
    """Shares from weights of groups or patterns of them, written `source.language` as in a mixture.

    A group belongs to the entry that names it, else to the first whose pattern fits; an entry's weight is shared among
    its groups by their bytes. An entry's name is its only pattern unless `patterns` lists others. Raises
    TokenizerError for a negative weight, for weights that are all 0 and, unless `leave_out`, for an entry without a
    group and a group without an entry.
    """
    names = {group: f"{group[1]}.{group[0]}" for group in sizes}
    listed = patterns or {entry: (entry,) for entry in weights}
    owner = {group: _owner(name, listed) for group, name in names.items()}
    for entry, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise TokenizerError(f"sampling: the weight of {entry} is {weight}.", hint="A weight is 0 or more.")
        if entry not in owner.values() and not leave_out:
            raise TokenizerError(f"sampling: no group matches {entry}.", hint=nearest(entry, list(names.values())))
    homeless = [names[group] for group, entry in owner.items() if entry is None]
    if homeless and not leave_out:
        raise TokenizerError(
            f"sampling: no weight is given for {', '.join(homeless[:9])}.",
            hint="Give each a weight (0 leaves it out), or set unmatched: leave_out.",
        )
    whole = {entry: sum(sizes[group] for group in sizes if owner[group] == entry) for entry in weights}
    shares = {
        group: weights[entry] * sizes[group] / whole[entry] if entry is not None and whole[entry] else 0.0
        for group, entry in owner.items()
    }
    total = math.fsum(shares.values())
    if not total > 0:
        raise TokenizerError("sampling: every group has the weight 0.", hint="Leave some text to train on.")
    return {group: share / total for group, share in shares.items()}


def ratios(
    sizes: Mapping[Group, int], wanted: Mapping[Group, float], *, repeat: bool = False
) -> dict[Group, float]:
    """What part of each group is taken: wanted / size, at most 1 unless text may `repeat`."""
    return {
        group: 0.0 if not size else wanted[group] / size if repeat else min(1.0, wanted[group] / size)
        for group, size in sizes.items()
    }


def _owner(name: str, listed: Mapping[str, Sequence[str]]) -> str | None:
    for entry, patterns in listed.items():
        if name in patterns:
            return entry
    fitting = (entry for entry, patterns in listed.items() if any(fnmatchcase(name, one) for one in patterns))
    return next(fitting, None)
