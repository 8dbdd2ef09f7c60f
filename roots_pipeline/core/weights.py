"""The arithmetic of weights: which share of the whole comes from which group.

Why: a group is `source.language`; its weight is the probability that a sample comes from it. The mixture weighs
groups by their tokens, and a tokenizer's training text by their bytes, which are called tokens here too. In: tokens
of each group, and a rule. Out: a weight for each group, adding up to 1; 0 means left out. Rules:

    proportional   by tokens, every token equally likely
    temperature    tokens ** alpha (Conneau and Lample 2019, section 3.1): alpha < 1 lifts small groups
    unimax         equal shares of a budget, but no group more than a number of epochs (Chung et al. 2023,
                   algorithm 1)
    explicit       the user's weights for groups or patterns of groups (`web.*`); presets are such lists

`weight_rules` applies one of them, or first one to the sources and then one inside each (hierarchical).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import yaml

from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.recipe import nearest

PRESETS = Path(__file__).parent / "presets"
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Entry:
    """A share of the mixture that is given as a whole: `groups` are names or patterns of groups."""

    name: str
    weight: float
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """What an explicit mixture leaves over: entries without any group, groups without any entry."""

    entries: tuple[str, ...]
    groups: tuple[str, ...]


def water_fill(sizes: Mapping[Key, float], total: float) -> dict[Key, float]:
    """How `total` is shared out: min(size, level) of each, with the level at which they add up to it.

    To water-fill is to pour a total into vessels of given sizes at one common level: small ones fill up, large ones are
    all filled to the same height (max-min fairness). If all sizes together are no more than `total`, each is taken
    whole.
    """
    left, filled = total, {}
    ascending = sorted(sizes, key=lambda key: sizes[key])
    for place, key in enumerate(ascending):
        filled[key] = min(float(sizes[key]), max(left, 0.0) / (len(ascending) - place))
        left -= filled[key]
    return {key: filled[key] for key in sizes}


def proportional(tokens: Mapping[Key, float]) -> dict[Key, float]:
    """Weights in proportion to the tokens."""
    return temperature(tokens, 1.0)


def temperature(tokens: Mapping[Key, float], alpha: float) -> dict[Key, float]:
    """Weights in proportion to share ** alpha; 1 is proportional, 0 equal. Empty groups get 0."""
    if not (math.isfinite(alpha) and alpha >= 0):
        raise MixtureError(f"alpha is {alpha}.", hint="Choose a number from 0 (equal shares) to 1 (shares by tokens).")
    total = sum(tokens.values())
    return _to_one({key: (count / total) ** alpha if count else 0.0 for key, count in tokens.items()})


def unimax(tokens: Mapping[str, int], budget: int, max_epochs: float) -> dict[str, float]:
    """Equal shares of `budget` tokens, none above `max_epochs` times the tokens of its group."""
    if budget < 1 or not 0 < max_epochs < math.inf:
        raise MixtureError(f"unimax needs a budget and a cap above 0, not {budget} tokens and {max_epochs} epochs.")
    # Among groups of equal size the order decides the last bit of a weight: that of their names.
    caps = {name: max_epochs * tokens[name] for name in sorted(tokens)}
    given = water_fill(caps, float(budget))
    return _to_one({name: given[name] for name in tokens})


def explicit(
    tokens: Mapping[str, int], entries: Sequence[Entry], *, allow_unmatched: bool = False
) -> tuple[dict[str, float], Unmatched]:
    """The weights of `entries`, each shared among its groups by their tokens, and what did not match.

    A group belongs to the entry that names it, else to the first entry with a pattern for it. Raises
    MixtureError for negative weights, weights that are all 0, weight on an empty group and, unless
    `allow_unmatched`, for entries without a group (with the nearest name) and groups without an entry.
    """
    for entry in entries:
        if not (math.isfinite(entry.weight) and entry.weight >= 0):
            raise MixtureError(f"the weight of {entry.name} is {entry.weight}.", hint="A weight is 0 or more.")
    owner = {name: owner_of(name, entries) for name in tokens}
    weights = dict.fromkeys(tokens, 0.0)
    empty = []
    for place, entry in enumerate(entries):
        members = [name for name in tokens if owner[name] == place]
        total = sum(tokens[name] for name in members)
        if not members:
            empty.append(entry)
        elif entry.weight > 0 and total == 0:
            raise MixtureError(
                f"{entry.name} has the weight {entry.weight} but nothing in it.",
                hint="Set its weight to 0, or add documents.",
            )
        for name in members:
            weights[name] = entry.weight * tokens[name] / total if total else 0.0
    unmatched = Unmatched(tuple(entry.name for entry in empty), tuple(name for name in tokens if owner[name] is None))
    if not allow_unmatched:
        _refuse(unmatched, empty, tokens)
    return _to_one(weights), unmatched


def read_preset(name: str) -> list[Entry]:
    """A published mixture: `roots` or `massivetext`."""
    known = sorted(path.stem for path in PRESETS.glob("*.yaml"))
    if name not in known:
        raise MixtureError(f"there is no mixture called '{name}'.", hint=nearest(name, known))
    document = yaml.safe_load((PRESETS / f"{name}.yaml").read_text("utf-8"))
    return [Entry(row["name"], float(row["weight"]), tuple(row["groups"])) for row in document["entries"]]


def owner_of(name: str, entries: Sequence[Entry]) -> int | None:
    """The entry to which a group belongs: the one that names it, else the first with a pattern for it."""
    for place, entry in enumerate(entries):
        if name in entry.groups:
            return place
    for place, entry in enumerate(entries):
        if any(fnmatchcase(name, pattern) for pattern in entry.groups):
            return place
    return None


def _refuse(unmatched: Unmatched, empty: Sequence[Entry], tokens: Mapping[str, int]) -> None:
    if empty:
        first = empty[0]
        near = nearest(first.groups[0] if first.groups else first.name, list(tokens))
        raise MixtureError(
            f"no group matches {first.name} ({', '.join(first.groups)}).",
            hint=f"{near} Or set unmatched: leave_out to go on without it.",
        )
    if unmatched.groups:
        raise MixtureError(
            f"no weight is given for {', '.join(unmatched.groups)}.",
            hint="Give each a weight (0 leaves it out), or set unmatched: leave_out.",
        )


def _to_one(weights: Mapping[Key, float]) -> dict[Key, float]:
    total = math.fsum(weights.values())
    if not total > 0:
        raise MixtureError(
            f"the weights of {len(weights)} groups add up to {total}.",
            hint="Give at least one group that is not empty a weight.",
        )
    return {key: weight / total for key, weight in weights.items()}
