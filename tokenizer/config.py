"""The `tokenizer` section of a recipe.

    tokenizer:
      vocab_size: 250680        # tokens that exist
      divisible_by: 128         # the embedding has a multiple of divisible_by x tensor_parallel rows
      tensor_parallel: 4
      pretokenizer: bloom       # or gpt2, gpt4, sentencepiece (see `pretokenizers`)
      language_weights: {code: 0.5}
      sampling: {rule: bloom}   # see `sampling.config`

Checked here, at the border; see `constraint` for which sizes fit together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from roots_pipeline.core.recipe import load_section
from tokenizer.constraint import VocabularySizes, fit_sizes
from tokenizer.pretokenizers import Digits, Name, Patterns, patterns_of
from tokenizer.sampling.config import Mixture, Proportional, Sampling
from tokenizer.sampling.mixture import read_mixture_weights

RECIPES = Path(__file__).parent / "recipes"

_LARGEST = 2**31 - 1  # ids are int32
Size = Annotated[int, Field(le=_LARGEST)]  # `constraint` says which small ones fit


class TokenizerRecipe(BaseModel):
    """What to train. Keys that are left out come from the recipe named by `extends`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    vocab_size: Size
    divisible_by: Size = 128
    tensor_parallel: Size = 1
    padded_vocab_size: Size | None = None  # None: the smallest that fits
    minimum_frequency: Annotated[int, Field(ge=0, le=_LARGEST)] = 0  # a pair rarer than this is not merged
    # Bytes; tokens of three bytes or more are shorter than this.
    max_token_length: Annotated[int, Field(ge=1, le=_LARGEST)] | None = None
    reserved: Annotated[int, Field(ge=0, le=100_000)] = 0  # ids at the end that no text can produce
    pretokenizer: Name = "bloom"
    digits: Digits = "whole"
    minimum_count: Annotated[int, Field(ge=1, le=_LARGEST)] = 1  # rarer pieces are left out; 1 is exact
    language_weights: dict[str, float] = {}  # how often each occurrence counts; languages not named count once
    sampling: Sampling = Proportional()
    continue_from: str | None = None  # a tokenizer.json whose tokens come first
    existing: str | None = Field(default=None, alias="import")  # a tokenizer.json to use as it is

    @property
    def patterns(self) -> Patterns:
        """The regular expressions of the pre-tokenizer."""
        return patterns_of(self.pretokenizer, self.digits)

    @model_validator(mode="after")
    def _one_origin(self) -> TokenizerRecipe:
        if self.continue_from is not None and self.existing is not None:
            raise ValueError("give continue_from or import, not both.")
        return self

    @property
    def sizes(self) -> VocabularySizes:
        """Both sizes of the vocabulary. Raises TokenizerError, naming possible ones, if they do not fit."""
        return fit_sizes(
            self.vocab_size,
            divisible_by=self.divisible_by,
            tensor_parallel=self.tensor_parallel,
            padded_vocab_size=self.padded_vocab_size,
            reserved=self.reserved,
        )


def load_tokenizer_recipe(recipe: str) -> TokenizerRecipe:
    """The checked section of a recipe, named or given by path. Raises RecipeError or TokenizerError."""
    checked = load_section(recipe, "tokenizer", TokenizerRecipe, RECIPES)
    _ = checked.sizes
    if isinstance(checked.sampling, Mixture) and checked.sampling.weights is None:
        same = checked.sampling.model_copy(update={"weights": read_mixture_weights(recipe)})
        return checked.model_copy(update={"sampling": same})
    return checked
