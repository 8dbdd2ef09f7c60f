"""The `sampling` key of the `tokenizer` section: which text a tokenizer learns from.

    sampling:
      rule: bloom               # proportional, bloom, explicit, mixture
      apply: documents          # draw documents; `weights` weighs the count table instead, without any draw
      budget: 30GB              # of text; nothing is taken twice
      deduplicate_lines: true
      deduplicate_documents: true

Without a budget, `weights` follow the rule freely (a small language may count more than once an occurrence), and
`documents` can only be drawn by the rule `proportional`, which then takes all.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field, model_validator

from roots_pipeline.core.weight_rules import Weights

_Bytes = Annotated[ByteSize, Field(ge=1, le=2**60)]


class _Sampling(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    apply: Literal["weights", "documents"] = "weights"
    budget: _Bytes | None = None
    deduplicate_lines: bool = False
    deduplicate_documents: bool = False
    seed: int = Field(default=42, ge=0, lt=2**63)

    @property
    def draws(self) -> bool:
        """Whether the documents that are counted are others than those of the corpus."""
        drawn = self.apply == "documents" and self.budget is not None
        return drawn or self.deduplicate_lines or self.deduplicate_documents


class Proportional(_Sampling):
    """Every byte equally likely."""

    rule: Literal["proportional"] = "proportional"


class _NeedsBudget(_Sampling):
    @model_validator(mode="after")
    def _budget_to_draw(self) -> _NeedsBudget:
        if self.apply == "documents" and self.budget is None:
            raise ValueError("documents can only be drawn up to a budget, such as 30GB.")
        return self


class Bloom(_NeedsBudget):
    """BLOOM's published procedure; `filled_to` None: half of all text, as its 800 GB were of ROOTS."""

    rule: Literal["bloom"]
    alpha: float = Field(default=0.3, ge=0, le=10)
    filled_to: _Bytes | None = None


class Explicit(_NeedsBudget):
    """Weights of groups or patterns such as `web.*`."""

    rule: Literal["explicit"]
    weights: dict[str, float]
    unmatched: Literal["error", "leave_out"] = "error"


class Mixture(_NeedsBudget):
    """The weights of the recipe's `mixture` section; `weights` holds them once the recipe has been read."""

    rule: Literal["mixture"]
    weights: Weights | None = None


Sampling = Annotated[Proportional | Bloom | Explicit | Mixture, Field(discriminator="rule")]
AnySampling = Proportional | Bloom | Explicit | Mixture
