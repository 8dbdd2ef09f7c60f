"""The `weights` key of a recipe's `mixture` section, checked at the border, and what each rule makes of a corpus.

In: a rule as the YAML says it, and the tokens of every group (bytes, where a tokenizer is to learn from the same
mixture). Out: a weight for every group. The arithmetic is in `weights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.weights import (
    Entry,
    Unmatched,
    explicit,
    proportional,
    read_preset,
    temperature,
    unimax,
)


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProportionalWeights(_Rule):
    """Every token equally likely."""

    rule: Literal["proportional"]


class TemperatureWeights(_Rule):
    """Share of tokens to the power of alpha."""

    rule: Literal["temperature"]
    alpha: float = Field(ge=0, allow_inf_nan=False)


class UnimaxWeights(_Rule):
    """Equal shares of a token budget, no group more than `max_epochs` times."""

    rule: Literal["unimax"]
    tokens: int = Field(gt=0)
    max_epochs: float = Field(gt=0, allow_inf_nan=False)


class ExplicitWeights(_Rule):
    """Weights of groups or patterns such as `web.*`."""

    rule: Literal["explicit"]
    weights: dict[str, float]
    unmatched: Literal["error", "leave_out"] = "error"


class PresetWeights(_Rule):
    """A published mixture; `groups` replaces the patterns of some of its entries."""

    rule: Literal["preset"]
    name: str
    groups: dict[str, list[str]] = {}
    unmatched: Literal["error", "leave_out"] = "error"


FlatWeights = Annotated[
    ProportionalWeights | TemperatureWeights | UnimaxWeights | ExplicitWeights | PresetWeights,
    Field(discriminator="rule"),
]


class HierarchicalWeights(_Rule):
    """First shares of the sources (or languages), then shares inside each of them.

    `outer` sees sources as groups (`web`, `code`), `inner` the languages of one source (`en`, `fr`); with
    `first: language` it is the other way round. `inner_of` replaces `inner` for some sources.
    """

    rule: Literal["hierarchical"]
    first: Literal["source", "language"] = "source"
    outer: FlatWeights
    inner: FlatWeights = ProportionalWeights(rule="proportional")
    inner_of: dict[str, FlatWeights] = {}


Weights = Annotated[
    ProportionalWeights | TemperatureWeights | UnimaxWeights | ExplicitWeights | PresetWeights | HierarchicalWeights,
    Field(discriminator="rule"),
]


def choose_weights(rule: Weights, tokens: Mapping[str, int]) -> tuple[dict[str, float], Unmatched]:
    """Weights by group, adding up to 1, from the training tokens of every group, and what did not match.

    Raises MixtureError for weights that cannot be.
    """
    if isinstance(rule, HierarchicalWeights):
        return _hierarchical(rule, tokens)
    return _flat(rule, tokens)


def _flat(rule: FlatWeights, tokens: Mapping[str, int]) -> tuple[dict[str, float], Unmatched]:
    if isinstance(rule, ExplicitWeights | PresetWeights):
        entries = _preset(rule) if isinstance(rule, PresetWeights) else _listed(rule)
        return explicit(tokens, entries, allow_unmatched=rule.unmatched == "leave_out")
    if isinstance(rule, TemperatureWeights):
        return temperature(tokens, rule.alpha), Unmatched((), ())
    if isinstance(rule, UnimaxWeights):
        return unimax(tokens, rule.tokens, rule.max_epochs), Unmatched((), ())
    return proportional(tokens), Unmatched((), ())


def _hierarchical(rule: HierarchicalWeights, tokens: Mapping[str, int]) -> tuple[dict[str, float], Unmatched]:
    parts = {name: _parts(name, rule.first) for name in tokens}
    totals: dict[str, int] = {}
    for name, (outer, _) in parts.items():
        totals[outer] = totals.get(outer, 0) + tokens[name]
    for outer in rule.inner_of:
        if outer not in totals:
            raise MixtureError(f"inner_of names '{outer}', which the mixture lacks.", hint=nearest(outer, list(totals)))
    shares, unmatched = _flat(rule.outer, totals)
    weights = dict.fromkeys(tokens, 0.0)
    entries, groups = list(unmatched.entries), [n for n, (outer, _) in parts.items() if outer in unmatched.groups]
    for outer, share in shares.items():
        if share == 0:
            continue
        members = {inner: name for name, (own, inner) in parts.items() if own == outer}
        inside = rule.inner_of.get(outer, rule.inner)
        if isinstance(inside, UnimaxWeights):  # its budget is that of the whole mixture
            inside = inside.model_copy(update={"tokens": max(1, round(inside.tokens * share))})
        found, left = _flat(inside, {inner: tokens[name] for inner, name in members.items()})
        for inner, weight in found.items():
            weights[members[inner]] = share * weight
        entries += [f"{entry} of {outer}" for entry in left.entries]
        groups += [members[inner] for inner in left.groups]
    return weights, Unmatched(tuple(entries), tuple(groups))


def _parts(group: str, first: str) -> tuple[str, str]:
    """(outer, inner) of a group `source.language`; a language has no dot, a source may have some."""
    source, _, language = group.rpartition(".")
    return (source, language) if first == "source" else (language, source)


def _listed(rule: ExplicitWeights) -> list[Entry]:
    return [Entry(name, weight, (name,)) for name, weight in rule.weights.items()]


def _preset(rule: PresetWeights) -> list[Entry]:
    entries = read_preset(rule.name)
    known = [entry.name for entry in entries]
    for name in rule.groups:
        if name not in known:
            raise MixtureError(f"the mixture {rule.name} has no part '{name}'.", hint=nearest(name, known))
    return [Entry(entry.name, entry.weight, tuple(rule.groups.get(entry.name, entry.groups))) for entry in entries]
