"""The section `train` of a recipe, checked before any process starts.

Sizes that do not fit together are refused here with a message that names the setting to change; sizes that
depend on the number of processes or on the tokenizer are checked by `layout` and `check_vocabulary`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from roots_pipeline.core.errors import RecipeError
from train.model.shape import Shape
from train.parallel.layout import Layout
from train.schedule import AnnealStyle, BatchSize, DecayStyle, LearningRate, RampStyle, WeightDecay
from train.settings import (
    Misfit,
    ModelConfig,
    OperationsConfig,
    RampConfig,
    Recomputation,
    Strict,
    divisors_near,
)
from train.skips import Skips

RECIPES = Path(__file__).parent / "recipes"
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Precision = Literal["fp32", "bf16", "fp16", "bf16-stochastic"]
_IMBALANCE = 1.05  # how much longer the longest pipeline stage may be than the mean


class TrainConfig(Strict):
    """Everything that decides a training run, apart from the data and the number of processes."""

    model: ModelConfig
    sequence_length: PositiveInt
    micro_batch: PositiveInt
    global_batch: PositiveInt
    batch_ramp: RampConfig | None = None
    train_samples: PositiveInt
    lr: PositiveFloat
    min_lr: NonNegativeFloat
    lr_decay: DecayStyle = "cosine"
    anneal_samples: NonNegativeInt = 0  # of `wsd`: the last ones before `decay_samples`, in which the rate falls
    anneal: AnnealStyle = "linear"
    warmup_samples: NonNegativeInt
    warmup_lr: NonNegativeFloat = 0.0  # of the first step
    decay_samples: PositiveInt | None = None  # null: train_samples
    clip: PositiveFloat = 1.0
    weight_decay: NonNegativeFloat = 0.1
    weight_decay_start: NonNegativeFloat | None = None  # at sample 0, if `weight_decay` is only reached at the end
    weight_decay_ramp: RampStyle = "constant"
    skip_samples: tuple[tuple[NonNegativeInt, PositiveInt], ...] = ()  # [first, end): passed over, see train.skips
    betas: tuple[Fraction, Fraction] = (0.9, 0.95)
    eps: PositiveFloat = 1e-8
    dropout: Fraction = 0.0
    seed: NonNegativeInt = 42
    precision: Precision = "bf16"
    tensor_parallel: PositiveInt = 1
    pipeline_parallel: PositiveInt = 1
    sequence_parallel: bool = False  # tensor-parallel processes also share the positions outside of matrices
    activation_checkpointing: Recomputation = "none"
    attention_within_documents: bool = False  # true: attention does not cross the ends of documents in a sample
    evaluate_every: NonNegativeInt = 0  # steps; 0: only before the first step and after the last
    validation_samples: NonNegativeInt = 0  # 0: no validation
    validation_groups: Literal["all"] | PositiveInt | tuple[str, ...] = ()  # that have a loss of their own; N: heaviest
    validation_group_samples: NonNegativeInt = 0  # of each; 0: validation_samples
    save_every: NonNegativeInt = 0  # steps; 0: only after the last
    save_in_background: bool = True  # files are written while training goes on, from a copy in memory
    keep: PositiveInt = 2  # newest checkpoints kept
    keep_every: NonNegativeInt = 0  # steps: those of every so many are kept for good; 0: none
    keep_hours: NonNegativeFloat = 0.0  # one checkpoint in so many hours is kept for good; 0: none
    log_every: PositiveInt = 1
    operations: OperationsConfig = OperationsConfig()

    @model_validator(mode="before")
    @classmethod
    def _tokens_are_samples(cls, values: Any) -> Any:
        """`train_tokens`, `warmup_tokens`, ... stand for the samples that hold so many tokens, and go before them."""
        if not isinstance(values, dict) or not isinstance(length := values.get("sequence_length"), int) or length < 1:
            return values
        found = dict(values)
        for name in ("train", "warmup", "decay", "anneal"):
            tokens = found.pop(f"{name}_tokens", None)
            if tokens is None:
                continue
            if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
                raise Misfit(f"{name}_tokens is {tokens!r}. Use a whole number of tokens.", f"{name}_tokens")
            found[f"{name}_samples"] = tokens // length
        return found

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        for problem in (self._layout_problem(), self._batch_problem(), self._schedule_problem()):
            if problem:
                raise problem
        return self

    def _layout_problem(self) -> Misfit | None:
        heads, tensor, pipeline = self.model.heads, self.tensor_parallel, self.pipeline_parallel
        if heads % tensor:
            return Misfit(
                f"tensor_parallel {tensor} does not divide the {heads} heads of the model. "
                f"Use tensor_parallel {divisors_near(heads, tensor)}.",
                "tensor_parallel",
                "model",
            )
        blocks = self.model.layers + 2
        if not _balanced(blocks, pipeline):
            fitting = [str(count) for count in range(1, blocks // 2 + 1) if _balanced(blocks, count)]
            return Misfit(
                f"pipeline_parallel {pipeline} does not cut {self.model.layers} layers + embedding + head = "
                f"{blocks} blocks into equal stages of at least 2. Use pipeline_parallel {' or '.join(fitting)}.",
                "pipeline_parallel",
                "model",
            )
        if self.sequence_parallel and self.sequence_length % tensor:
            return Misfit(
                f"sequence_parallel cannot cut sequence_length {self.sequence_length} into {tensor} equal parts. "
                f"Use sequence_length {-(-self.sequence_length // tensor) * tensor}, or no sequence_parallel.",
                "sequence_length",
                "sequence_parallel",
                "tensor_parallel",
            )
        return None

    def _batch_problem(self) -> Misfit | None:
        if self.global_batch % self.micro_batch:
            return Misfit(
                f"global_batch {self.global_batch} is not a multiple of micro_batch {self.micro_batch}. "
                f"Use global_batch {-(-self.global_batch // self.micro_batch) * self.micro_batch}.",
                "global_batch",
                "micro_batch",
            )
        if self.train_samples < self.global_batch:
            return Misfit(
                f"train_samples {self.train_samples} is less than one global_batch of {self.global_batch}. "
                "Use more train_samples or a smaller global_batch.",
                "train_samples",
                "global_batch",
            )
        ramp = self.batch_ramp
        if ramp and (ramp.start >= self.global_batch or (self.global_batch - ramp.start) % ramp.increment):
            return Misfit(
                f"batch_ramp from {ramp.start} in increments of {ramp.increment} never reaches global_batch "
                f"{self.global_batch} exactly. Use an increment that divides global_batch - start.",
                "batch_ramp",
                "global_batch",
            )
        return None

    def _schedule_problem(self) -> Misfit | None:
        if self.min_lr > self.lr:
            return Misfit(f"min_lr {self.min_lr} is above lr {self.lr}. Swap them or lower min_lr.", "min_lr", "lr")
        if self.warmup_lr > self.lr:
            return Misfit(f"warmup_lr {self.warmup_lr} is above lr {self.lr}. Use a lower one.", "warmup_lr", "lr")
        if self.warmup_samples >= (decay := self.decay_samples or self.train_samples):
            return Misfit(
                f"warmup_samples {self.warmup_samples} leaves nothing of the {decay} samples until the end of "
                "the decay. Use fewer warmup_samples or more decay_samples.",
                "warmup_samples",
                "decay_samples",
                "train_samples",
            )
        if self.lr_decay == "wsd" and not 0 < self.anneal_samples <= decay - self.warmup_samples:
            return Misfit(
                f"lr_decay wsd needs anneal_samples between 1 and {decay - self.warmup_samples} (it is "
                f"{self.anneal_samples}): the last ones before the end of the decay, after the warm-up.",
                "anneal_samples",
                "lr_decay",
            )
        if self.weight_decay_start is not None and self.weight_decay_ramp == "constant":
            message = "weight_decay_start needs weight_decay_ramp linear or cosine."
            return Misfit(message, "weight_decay_start", "weight_decay_ramp")
        for first, end in self.skip_samples:
            if end <= first:
                return Misfit(f"skip_samples [{first}, {end}] holds no sample. Use [first, end).", "skip_samples")
        return None

    def layout(self, processes: int) -> Layout:
        """How `processes` processes are arranged; raises RecipeError if they cannot be."""
        per_copy = self.tensor_parallel * self.pipeline_parallel
        if processes % per_copy:
            raise RecipeError(
                f"{processes} process{'es' * (processes > 1)} cannot hold whole models of tensor_parallel "
                f"{self.tensor_parallel} x pipeline_parallel {self.pipeline_parallel} = {per_copy} processes.",
                hint=f"Use --processes {-(-processes // per_copy) * per_copy} or a smaller tensor_parallel.",
            )
        data = processes // per_copy
        unit = self.micro_batch * data
        sizes = {"global_batch": self.global_batch}
        if self.batch_ramp:
            sizes |= {
                "batch_ramp.start": self.batch_ramp.start,
                "batch_ramp.increment": self.batch_ramp.increment,
            }
        if self.validation_samples:
            sizes["validation_samples"] = self.validation_samples
            if self.validation_group_samples:
                sizes["validation_group_samples"] = self.validation_group_samples
        for name, size in sizes.items():
            if size % unit:
                raise RecipeError(
                    f"train.{name} {size} is not a multiple of micro_batch {self.micro_batch} x {data} "
                    f"data-parallel processes = {unit}.",
                    hint=f"Use {name} {-(-size // unit) * unit}, a smaller micro_batch, or other --processes.",
                )
        return Layout(data, self.tensor_parallel, self.pipeline_parallel)

    def check_vocabulary(self, rows: int) -> None:
        """Raise RecipeError if the embedding's `rows` (padding included) cannot be cut over the processes."""
        if rows % self.tensor_parallel:
            raise RecipeError(
                f"the padded vocabulary of {rows} rows cannot be cut into {self.tensor_parallel} parts "
                "(train.tensor_parallel).",
                hint=f"Pad the tokenizer's vocabulary to a multiple of {self.tensor_parallel}, or use another "
                "train.tensor_parallel.",
            )

    def shape(self, vocabulary: int) -> Shape:
        """The model's shape over an embedding of `vocabulary` rows."""
        model = self.model
        return Shape(
            model.hidden,
            model.layers,
            model.heads,
            vocabulary,
            epsilon=model.layer_norm_epsilon,
            init_std=model.init_std,
            dropout=self.dropout,
            seed=self.seed,
            kind=model.kind,
            bf16_biases=model.bf16_biases,
        )

    def learning_rate(self) -> LearningRate:
        """The schedule of the learning rate."""
        decay = self.decay_samples or self.train_samples
        return LearningRate(
            self.lr,
            self.min_lr,
            self.warmup_samples,
            decay,
            self.lr_decay,
            self.warmup_lr,
            self.anneal_samples,
            self.anneal,
        )

    def decay_of_weights(self) -> WeightDecay:
        """The schedule of the weight decay of matrices."""
        start = self.weight_decay if self.weight_decay_start is None else self.weight_decay_start
        return WeightDecay(start, self.weight_decay, self.decay_samples or self.train_samples, self.weight_decay_ramp)

    def skips(self) -> Skips:
        """The samples that the recipe passes over."""
        return Skips.of(self.skip_samples)

    def batch_size(self) -> BatchSize:
        """The schedule of the global batch."""
        ramp = self.batch_ramp
        if ramp is None:
            return BatchSize(self.global_batch, self.global_batch)
        return BatchSize(self.global_batch, ramp.start, ramp.increment, ramp.samples)

    def identity(self) -> dict[str, Any]:
        """The settings that decide the numbers of a run: a checkpoint made under others must not be
        continued.

        How often to look or save, and how the work is spread, may change between two parts of one run.
        """
        free = {
            "evaluate_every",
            "save_every",
            "save_in_background",
            "keep",
            "keep_every",
            "keep_hours",
            "log_every",
            "micro_batch",
            "activation_checkpointing",
            "sequence_parallel",
            "validation_samples",
            "validation_groups",
            "validation_group_samples",
            "operations",
            "tensor_parallel",
            "pipeline_parallel",
        }
        return self.model_dump(mode="json", exclude=free)


def _balanced(blocks: int, stages: int) -> bool:
    """Whether stages of at least two blocks can be cut without the others waiting much for the longest."""
    return 2 * stages <= blocks and -(-blocks // stages) * stages <= _IMBALANCE * blocks
