"""Parts of the section `train` of a recipe: the model, the ramp of the batch, and how a run is watched over."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from train.model.shape import Kind


def _recomputation(value: object) -> object:
    return {True: "full", False: "none"}[value] if isinstance(value, bool) else value


# true and false stand for full and none.
Recomputation = Annotated[Literal["none", "selective", "full"], BeforeValidator(_recomputation)]


class Misfit(ValueError):
    """Settings that are fine one by one but not together; `keys` are their names, to point at in the recipe."""

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelConfig(Strict):
    """Kind and sizes of a model. `init_std` is 0.0048 for every published BLOOM, also where sqrt(1 / 3 hidden) is
    larger."""

    kind: Kind = "bloom"
    hidden: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    init_std: PositiveFloat = 0.0048
    layer_norm_epsilon: PositiveFloat = 1e-5  # of a Gopher's RMSNorm too
    bf16_biases: bool = False  # round ALiBi's biases as BLOOM's run in bf16 did, whatever the precision

    @model_validator(mode="after")
    def _heads_divide_hidden(self) -> Self:
        if self.hidden % self.heads:
            below = self.hidden // self.heads * self.heads
            raise Misfit(
                f"hidden {self.hidden} cannot be cut into {self.heads} heads. "
                f"Use hidden {below or self.heads} or {below + self.heads}, "
                f"or heads {divisors_near(self.hidden, self.heads)}.",
                "hidden",
                "heads",
            )
        return self


class RampConfig(Strict):
    """The global batch starts at `start` and grows by `increment`, in equal steps over `samples` samples."""

    start: PositiveInt
    increment: PositiveInt
    samples: PositiveInt


class SpikeConfig(Strict):
    """When a loss or a gradient norm is out of the ordinary, and what happens then (see `train.spikes`)."""

    action: Literal["none", "warn", "snapshot", "rollback"] = "warn"
    window: Annotated[int, Field(ge=8)] = 64  # steps that say what is ordinary
    loss: PositiveFloat = 10.0  # robust standard deviations above the median
    gradient_norm: PositiveFloat = 20.0  # times the median
    margin_samples: NonNegativeInt = 0  # also skipped before and after the step, by `rollback`
    most_rollbacks: NonNegativeInt = 3  # of a whole run; one more stops it


class OperationsConfig(Strict):
    """How a run is watched over and stopped; nothing here changes its numbers, except `spikes.action: rollback`."""

    spikes: SpikeConfig = SpikeConfig()
    kill_switch: str | None = None  # a file that, when it exists, makes the run save and stop; null: RUN/model/STOP
    hang_minutes: NonNegativeFloat = 30.0  # without a finished step, until stacks are dumped and the job ends; 0: never
    collective_minutes: PositiveFloat = 60.0  # until a collective operation gives up
    heartbeat_seconds: PositiveFloat = 10.0
    slow_check_every: NonNegativeInt = 0  # steps; 0: never
    slow_factor: Annotated[float, Field(gt=1.0)] = 1.1  # a process slower than this times the median is named
    gpu: str | None = None  # a name in train/hardware.yaml, to log the share of its data sheet's peak (mfu, hfu)
    wandb: str | None = None  # project of Weights & Biases to report to; needs the package


def divisors_near(whole: int, wanted: int) -> str:
    """The divisors of a number next to a wanted one, as words."""
    divisors = [n for n in range(1, whole + 1) if whole % n == 0]
    below = max((n for n in divisors if n < wanted), default=None)
    above = min((n for n in divisors if n > wanted), default=None)
    return " or ".join(str(n) for n in (below, above) if n is not None)
