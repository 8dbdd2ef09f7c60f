"""From the `weights` section of a recipe to a weight for every group; the rules are in `weights`."""

from __future__ import annotations

from collections.abc import Mapping

from mixtures.config import ExplicitWeights, PresetWeights, TemperatureWeights, UnimaxWeights, Weights
from mixtures.weights import Entry, Unmatched, explicit, proportional, read_preset, temperature, unimax
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.recipe import nearest


def choose_weights(rule: Weights, tokens: Mapping[str, int]) -> tuple[dict[str, float], Unmatched]:
    """Weights by group, adding up to 1, from the training tokens of every group, and what did not match.

    Raises MixtureError for weights that cannot be.
    """
    if isinstance(rule, ExplicitWeights | PresetWeights):
        entries = _preset(rule) if isinstance(rule, PresetWeights) else _listed(rule)
        return explicit(tokens, entries, allow_unmatched=rule.unmatched == "leave_out")
    if isinstance(rule, TemperatureWeights):
        return temperature(tokens, rule.alpha), Unmatched((), ())
    if isinstance(rule, UnimaxWeights):
        return unimax(tokens, rule.tokens, rule.max_epochs), Unmatched((), ())
    return proportional(tokens), Unmatched((), ())


def _listed(rule: ExplicitWeights) -> list[Entry]:
    return [Entry(name, weight, (name,)) for name, weight in rule.weights.items()]


def _preset(rule: PresetWeights) -> list[Entry]:
    entries = read_preset(rule.name)
    known = [entry.name for entry in entries]
    for name in rule.groups:
        if name not in known:
            raise MixtureError(f"the mixture {rule.name} has no part '{name}'.", hint=nearest(name, known))
    return [Entry(entry.name, entry.weight, tuple(rule.groups.get(entry.name, entry.groups))) for entry in entries]
