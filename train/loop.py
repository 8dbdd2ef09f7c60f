"""The training loop: read, step, evaluate, save, until the samples are used up.

The state of a run is the number of samples it has consumed. Learning rate, batch size, data and dropout
follow from it, so a run that was stopped and continued gives the same losses, digit for digit, as one that
was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from roots_pipeline.core.errors import TrainingError
from train.checkpoint import Checkpoints
from train.config import TrainConfig
from train.data import SampleSource, micro_batches
from train.monitor import Monitor
from train.parallel.topology import Place
from train.precision import skipped_step
from train.skips import Skips, count_steps
from train.validation import Counted, ValidationSet, count_tokens


@dataclass(slots=True)
class Trainer:
    """One run on this process. `monitor` is None on all processes but the leading one."""

    config: TrainConfig
    engine: Any
    place: Place
    training: SampleSource
    validation: list[ValidationSet]
    checkpoints: Checkpoints
    monitor: Monitor | None
    stop_after: int | None = None  # steps of this call; None: to the end
    token_bytes: npt.NDArray[np.int64] | None = None  # see train.validation; without it bits per byte are unknown
    skips: Skips = field(default_factory=Skips)
    _counted: dict[str, Counted] = field(default_factory=dict)  # known to the leading process

    def run(self) -> tuple[int, int]:
        """Train to the end (or for `stop_after` steps) from the newest checkpoint; returns (step,
        samples)."""
        try:
            step, samples = self._train()
            self.checkpoints.wait()
            return step, samples
        finally:
            self.checkpoints.settle()

    def _train(self) -> tuple[int, int]:
        config = self.config
        batch_size = config.batch_size()
        total_steps = count_steps(batch_size, self.skips, config.train_samples)
        step, samples = self.checkpoints.restore(self.engine, self._say)
        last = total_steps if self.stop_after is None else min(total_steps, step + self.stop_after)
        if self.monitor is not None:
            self.monitor.start(step)
            self._counted = {one.name: count_tokens(one, self.token_bytes) for one in self.validation}
        if step == 0:
            self._evaluate(step, samples)
        while step < last:
            samples = self._train_step(step + 1, samples, batch_size(samples), total_steps)
            step += 1
            if step == total_steps or (config.evaluate_every and step % config.evaluate_every == 0):
                self._evaluate(step, samples)
            if step == last or (config.save_every and step % config.save_every == 0):
                self.checkpoints.save(self.engine, step, samples)
        if self.monitor is not None:
            self.monitor.close()
        return step, samples

    def _train_step(self, step: int, samples: int, batch: int, total_steps: int) -> int:
        """Train on the next `batch` samples; returns the position after them."""
        config = self.config
        started = time.perf_counter()
        numbers, after = self.skips.numbers(samples, batch), self.skips.end_of(samples, batch)
        rate, decay = config.learning_rate()(samples), config.decay_of_weights()(samples)
        if self.engine.train_batch_size() != batch:
            self.engine.set_train_batch_size(batch)
        for group in self.engine.optimizer.param_groups:
            group["lr"] = rate
        self.engine.optimizer.param_groups[0]["weight_decay"] = decay  # matrices; see train.optimizer
        self.engine.module.begin_step(numbers)
        loss = float(self.engine.train_batch(self._batches(self.training, numbers)))
        norm = float(self.engine.get_global_grad_norm())
        if not (math.isfinite(loss) and math.isfinite(norm)) and not skipped_step(config.precision, self.engine):
            raise TrainingError(
                f"the loss became {loss} (gradient norm {norm}) in step {step}, which read samples {numbers[0]} to "
                f"{numbers[-1]}.",
                hint="Lower train.lr or use more train.warmup_samples; a run continues from its last checkpoint.",
            )
        if self.monitor is not None:
            tokens, seconds = batch * config.sequence_length, time.perf_counter() - started
            self.monitor.step(
                step,
                after,
                tokens,
                seconds,
                total_steps,
                loss=loss,
                gradient_norm=norm,
                learning_rate=rate,
                global_batch=batch,
            )
        return after

    def _evaluate(self, step: int, samples: int) -> None:
        if not self.validation:
            return
        unit = self.config.micro_batch * self.place.layout.data
        losses = {}
        for one in self.validation:
            batches = self._batches(one.source, range(one.samples))
            losses[one.name] = float(self.engine.eval_batch(batches, num_micro_batches=one.samples // unit))
        if self.monitor is not None:
            found = {name: (loss, self._counted[name]) for name, loss in losses.items()}
            self.monitor.validation(step, samples, found)

    def _batches(self, source: SampleSource, numbers: Sequence[int] | npt.NDArray[np.int64]) -> Any:
        if not self.place.reads_data:
            return None
        return micro_batches(source, numbers, self.config.micro_batch, self.place.data_rank, self.place.layout.data)

    def _say(self, text: str) -> None:
        if self.monitor is not None:
            self.monitor.say(text)
