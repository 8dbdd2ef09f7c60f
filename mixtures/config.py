"""The `mixture` section of a recipe, checked at the border.

Inside the package these settings travel as the plain values of the lock; nothing but this module and the
commands knows pydantic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mixtures.order import Variant
from roots_pipeline.core.recipe import load_section

RECIPES = Path(__file__).parent / "recipes"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProportionalWeights(_Section):
    """Every token equally likely."""

    rule: Literal["proportional"]


class TemperatureWeights(_Section):
    """Share of tokens to the power of alpha."""

    rule: Literal["temperature"]
    alpha: float = Field(ge=0, allow_inf_nan=False)


class UnimaxWeights(_Section):
    """Equal shares of a token budget, no group more than `max_epochs` times."""

    rule: Literal["unimax"]
    tokens: int = Field(gt=0)
    max_epochs: float = Field(gt=0, allow_inf_nan=False)


class ExplicitWeights(_Section):
    """Weights of groups or patterns such as `web.*`."""

    rule: Literal["explicit"]
    weights: dict[str, float]
    unmatched: Literal["error", "leave_out"] = "error"


class PresetWeights(_Section):
    """A published mixture; `groups` replaces the patterns of some of its entries."""

    rule: Literal["preset"]
    name: str
    groups: dict[str, list[str]] = {}
    unmatched: Literal["error", "leave_out"] = "error"


FlatWeights = ProportionalWeights | TemperatureWeights | UnimaxWeights | ExplicitWeights | PresetWeights


class HierarchicalWeights(_Section):
    """First shares of the sources (or languages), then shares inside each of them.

    `outer` sees sources as groups (`web`, `code`), `inner` the languages of one source (`en`, `fr`); with
    `first: language` it is the other way round. `inner_of` replaces `inner` for some sources.
    """

    rule: Literal["hierarchical"]
    first: Literal["source", "language"] = "source"
    outer: Annotated[FlatWeights, Field(discriminator="rule")]
    inner: Annotated[FlatWeights, Field(discriminator="rule")] = ProportionalWeights(rule="proportional")
    inner_of: dict[str, Annotated[FlatWeights, Field(discriminator="rule")]] = {}


Weights = FlatWeights | HierarchicalWeights


class HashSplit(_Section):
    """Shares of the documents of each group, by a hash of their ids: `share` for validation, `test` beside it."""

    method: Literal["hash"]
    share: float = Field(ge=0, lt=1)
    test: float = Field(default=0.0, ge=0, lt=1)


class RangeSplit(_Section):
    """Ranges of positions, as BLOOM's data were split."""

    method: Literal["range"]
    train: str
    validation: str
    test: str | None = None


class CommaSplit(_Section):
    """Parts for train, validation and test, such as 969,30,1."""

    method: Literal["comma"]
    parts: str


class MixtureRecipe(_Section):
    """How a corpus becomes a mixture."""

    sequence_length: int = Field(gt=0)
    seed: int = Field(ge=0, lt=2**32)
    variant: Variant
    weights: Annotated[Weights, Field(discriminator="rule")]
    split: Annotated[HashSplit | RangeSplit | CommaSplit, Field(discriminator="method")]
    max_epochs: float = Field(gt=0, allow_inf_nan=False)
    keep_pieces: bool = False
    foreign: dict[str, str] = {}  # groups that others encoded: name -> path of their .bin/.idx without the suffix


def load_mixture_recipe(recipe: str) -> MixtureRecipe:
    """The `mixture` section of a built-in recipe or a file. Raises RecipeError with file and line."""
    return load_section(recipe, "mixture", MixtureRecipe, RECIPES)
