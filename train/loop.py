"""The training loop: read, step, evaluate, save, until the samples are used up.

The state of a run is the number of samples it has consumed. Learning rate, batch size, data and dropout
follow from it, so a run that was stopped and continued gives the same losses, digit for digit, as one that
was not.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from roots_pipeline.core.errors import TrainingError
from train.checkpoint import Checkpoints
from train.config import TrainConfig
from train.data import SampleSource, micro_batches, unigram_entropy
from train.monitor import Monitor
from train.parallel.topology import Place
from train.precision import skipped_step


@dataclass(slots=True)
class Trainer:
    """One run on this process. `monitor` is None on all processes but the leading one."""

    config: TrainConfig
    engine: Any
    place: Place
    training: SampleSource
    validation: SampleSource | None
    checkpoints: Checkpoints
    monitor: Monitor | None
    stop_after: int | None = None  # steps of this call; None: to the end
    _entropy: float = math.nan  # of the validation tokens, known to the leading process

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
        learning_rate, batch_size = config.learning_rate(), config.batch_size()
        total_steps = batch_size.steps(config.train_samples)
        step, samples = self.checkpoints.restore(self.engine, self._say)
        last = total_steps if self.stop_after is None else min(total_steps, step + self.stop_after)
        if self.monitor is not None:
            self.monitor.start(step)
            if self.validation is not None and config.validation_samples:
                self._entropy = unigram_entropy(self.validation, config.validation_samples)
        if step == 0:
            self._evaluate(step, samples)
        while step < last:
            batch = batch_size(samples)
            self._train_step(step + 1, samples, batch, learning_rate(samples), total_steps)
            step, samples = step + 1, samples + batch
            if step == total_steps or (config.evaluate_every and step % config.evaluate_every == 0):
                self._evaluate(step, samples)
            if step == last or (config.save_every and step % config.save_every == 0):
                self.checkpoints.save(self.engine, step, samples)
        if self.monitor is not None:
            self.monitor.close()
        return step, samples

    def _train_step(self, step: int, samples: int, batch: int, rate: float, total_steps: int) -> None:
        config = self.config
        started = time.perf_counter()
        if self.engine.train_batch_size() != batch:
            self.engine.set_train_batch_size(batch)
        for group in self.engine.optimizer.param_groups:
            group["lr"] = rate
        self.engine.module.begin_step(samples)
        loss = float(self.engine.train_batch(self._batches(self.training, samples, batch)))
        norm = float(self.engine.get_global_grad_norm())
        if not (math.isfinite(loss) and math.isfinite(norm)) and not skipped_step(config.precision, self.engine):
            raise TrainingError(
                f"the loss became {loss} (gradient norm {norm}) in step {step}, which read samples {samples} to "
                f"{samples + batch - 1}.",
                hint="Lower train.lr or use more train.warmup_samples; a run continues from its last checkpoint.",
            )
        if self.monitor is not None:
            tokens, seconds = batch * config.sequence_length, time.perf_counter() - started
            self.monitor.step(
                step,
                samples + batch,
                tokens,
                seconds,
                total_steps,
                loss=loss,
                gradient_norm=norm,
                learning_rate=rate,
                global_batch=batch,
            )

    def _evaluate(self, step: int, samples: int) -> None:
        count = self.config.validation_samples
        if self.validation is None or count == 0:
            return
        unit = self.config.micro_batch * self.place.layout.data
        batches = self._batches(self.validation, 0, count)
        loss = float(self.engine.eval_batch(batches, num_micro_batches=count // unit))
        if self.monitor is not None:
            self.monitor.validation(step, samples, loss, self._entropy)

    def _batches(self, source: SampleSource, start: int, count: int) -> Any:
        if not self.place.reads_data:
            return None
        layout = self.place.layout
        return micro_batches(source, start, count, self.config.micro_batch, self.place.data_rank, layout.data)

    def _say(self, text: str) -> None:
        if self.monitor is not None:
            self.monitor.say(text)
