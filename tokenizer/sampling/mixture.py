"""`same as mixture`: the shares that the `mixture` section of the same recipe gives, for the tokenizer's training text.

The rules are those of the mixture step (proportional, temperature, UniMax, explicit, a published preset), over bytes
instead of tokens: tokens do not exist before there is a tokenizer. Only files are read, the recipe and the preset;
the tokenizer does not depend on the code of the mixture step.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.recipe import load_section, nearest
from tokenizer.counts_file import Group
from tokenizer.sampling.rules import explicit, power, water_fill

_MIXTURES = Path(__file__).parent.parent.parent / "mixtures"


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Proportional(_Rule):
    rule: Literal["proportional"]


class _Temperature(_Rule):
    rule: Literal["temperature"]
    alpha: float = Field(ge=0, allow_inf_nan=False)


class _Unimax(_Rule):
    rule: Literal["unimax"]
    tokens: int = Field(gt=0)
    max_epochs: float = Field(gt=0, allow_inf_nan=False)


class _Explicit(_Rule):
    rule: Literal["explicit"]
    weights: dict[str, float]
    unmatched: Literal["error", "leave_out"] = "error"


class _Preset(_Rule):
    rule: Literal["preset"]
    name: str
    groups: dict[str, list[str]] = {}
    unmatched: Literal["error", "leave_out"] = "error"


MixtureWeights = Annotated[
    _Proportional | _Temperature | _Unimax | _Explicit | _Preset, Field(discriminator="rule")
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)  # the mixture step checks the rest
    weights: MixtureWeights


def read_mixture_weights(recipe: str) -> MixtureWeights:
    """The weights of the `mixture` section of a recipe. Raises RecipeError."""
    return load_section(recipe, "mixture", _Section, _MIXTURES / "recipes").weights


def shares_of_mixture(sizes: Mapping[Group, int], rule: MixtureWeights) -> dict[Group, float]:
    """The share of each group, adding up to 1. Raises TokenizerError for weights that cannot be."""
    floats = {group: float(size) for group, size in sizes.items()}
    if isinstance(rule, _Temperature):
        return power(floats, rule.alpha)
    if isinstance(rule, _Unimax):
        # UniMax (Chung et al. 2023, algorithm 1) is water-filling up to a number of epochs.
        capped = {group: rule.max_epochs * size for group, size in floats.items()}
        return power(water_fill(capped, float(rule.tokens)), 1.0)
    if isinstance(rule, _Explicit):
        return explicit(sizes, rule.weights, leave_out=rule.unmatched == "leave_out")
    if isinstance(rule, _Preset):
        return _preset(sizes, rule)
    return power(floats, 1.0)


def _preset(sizes: Mapping[Group, int], rule: _Preset) -> dict[Group, float]:
    known = sorted(path.stem for path in (_MIXTURES / "data").glob("*.yaml"))
    if rule.name not in known:
        raise TokenizerError(f"there is no mixture called '{rule.name}'.", hint=nearest(rule.name, known))
    path = _MIXTURES / "data" / f"{rule.name}.yaml"
    weights: dict[str, float] = {}
    shared: dict[str, tuple[str, ...]] = {}
    for entry in yaml.safe_load(path.read_text("utf-8"))["entries"]:
        shared[entry["name"]] = tuple(rule.groups.get(entry["name"], entry["groups"]))
        weights[entry["name"]] = float(entry["weight"])
    return explicit(sizes, weights, leave_out=rule.unmatched == "leave_out", patterns=shared)
