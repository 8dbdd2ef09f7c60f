"""The `mixture` section of a recipe, checked at the border.

Inside the package these settings travel as the plain values of the lock; nothing but this module and the
commands knows pydantic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mixtures.order import Variant
from mixtures.packing import Packing
from roots_pipeline.core.recipe import load_section
from roots_pipeline.core.weight_rules import Weights

RECIPES = Path(__file__).parent / "recipes"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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
    packing: Packing = "stream"  # best_fit: documents whole in samples where they fit, the rest padding without a loss
    weights: Weights
    split: Annotated[HashSplit | RangeSplit | CommaSplit, Field(discriminator="method")]
    max_epochs: float = Field(gt=0, allow_inf_nan=False)
    keep_pieces: bool = False
    foreign: dict[str, str] = {}  # groups that others encoded: name -> path of their .bin/.idx without the suffix


def load_mixture_recipe(recipe: str) -> MixtureRecipe:
    """The `mixture` section of a built-in recipe or a file. Raises RecipeError with file and line."""
    return load_section(recipe, "mixture", MixtureRecipe, RECIPES)
