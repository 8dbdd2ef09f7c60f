"""`same as mixture`: the shares that the `mixture` section of the same recipe gives, for the tokenizer's training text.

Every rule of the mixture step, over bytes instead of tokens: tokens do not exist before there is a tokenizer. The
rules are in `roots_pipeline.core`; of the mixture step only the built-in recipes are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from roots_pipeline.core.recipe import load_section
from roots_pipeline.core.weight_rules import Weights, choose_weights
from tokenizer.counts_file import Group
from tokenizer.sampling.rules import group_name

_RECIPES = Path(__file__).parent.parent.parent / "mixtures" / "recipes"


class _Section(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)  # the mixture step checks the rest
    weights: Weights


def read_mixture_weights(recipe: str) -> Weights:
    """The weights of the `mixture` section of a recipe. Raises RecipeError."""
    return load_section(recipe, "mixture", _Section, _RECIPES).weights


def shares_of_mixture(sizes: Mapping[Group, int], rule: Weights) -> dict[Group, float]:
    """The share of each group, adding up to 1. Raises MixtureError for weights that cannot be."""
    shares, _ = choose_weights(rule, {group_name(group): size for group, size in sizes.items()})
    return {group: shares[group_name(group)] for group in sizes}
