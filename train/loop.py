"""The training loop: read, step, evaluate, save, until the samples are used up or something says stop.

The state of a run is its position in the mixture's samples. Learning rate, batch size, data and dropout follow from it,
so a run that was stopped and continued gives the same losses, digit for digit, as one that was not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from roots_pipeline.core.errors import TrainingError
from train.checkpoint import Checkpoints
from train.config import TrainConfig
from train.data import (
    SampleSource,
    StartsOf,
    document_starts,
    labels_of_micro_batch,
    micro_batches,
    packed_source,
)
from train.health import slow_processes, space_warning
from train.incidents import documents_of, names, note_incident, note_roll_back, rolled_back
from train.monitor import Monitor
from train.parallel.topology import Place
from train.precision import skipped_step
from train.skips import Skips, count_steps
from train.spikes import SpikeDetector
from train.stopping import StopRequests, agree
from train.validation import Counted, ValidationSet, count_tokens
from train.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step gave, the same on all processes; `numbers` are its samples, `after` the position behind them."""

    numbers: npt.NDArray[np.int64]
    after: int
    loss: float
    norm: float
    rate: float
    seconds: float


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
    stops: StopRequests | None = None
    watchdog: Watchdog | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # how far the run is, for the heartbeat
    _counted: dict[str, Counted] = field(default_factory=dict)  # known to the leading process
    _snapshot: int = -(10**9)  # the last step that was saved because of a spike

    @property
    def folder(self) -> Path:
        """RUN/model."""
        return self.checkpoints.folder.parent

    def run(self) -> tuple[int, int]:
        """Train to the end (or for `stop_after` steps, or until something says stop) from the newest checkpoint;
        returns (step, position)."""
        try:
            result = self._train()
            self.checkpoints.wait()
            return result
        finally:
            self.checkpoints.settle()

    def _train(self) -> tuple[int, int]:
        config, detector = self.config, SpikeDetector(self.config.operations.spikes)
        step, samples = self._begin(detector)
        first = step
        if step == 0:
            self._evaluate(step, samples)
            if config.operations.spikes.action == "rollback":
                self.checkpoints.save(self.engine, 0, 0)  # somewhere to go back to
        while step < (last := self._last_step(first)):
            self._is_alive(step, samples, last, f"in step {step + 1}")
            outcome = self._step(step + 1, samples)
            spike, reason = self._judge(detector, outcome)
            if spike and self._goes_back(step + 1, outcome, reason):
                step, samples = self._begin(detector)
                continue
            step, samples = step + 1, outcome.after
            self._report(step, outcome, last)
            stop = self._stop_reason()
            if step == self._total or (config.evaluate_every and step % config.evaluate_every == 0):
                self._is_alive(step, samples, last, f"evaluating after step {step}")
                self._evaluate(step, samples)
            snapshot = spike and self._wants_snapshot(step)
            if stop or snapshot or step == last or (config.save_every and step % config.save_every == 0):
                self._is_alive(step, samples, last, f"saving step {step}")
                self._save(step, samples, keep=snapshot)
            if (every := config.operations.slow_check_every) and step % every == 0:
                self._name_slow_processes(step)
            if stop:
                self._say(f"Saved and stopped after step {step}, because {stop}. The same command continues.")
                break
        if self.monitor is not None:
            self.monitor.close()
        return step, samples

    @property
    def _total(self) -> int:
        return count_steps(self.config.batch_size(), self.skips, self.config.train_samples)

    def _last_step(self, first: int) -> int:
        return self._total if self.stop_after is None else min(self._total, first + self.stop_after)

    def _begin(self, detector: SpikeDetector) -> tuple[int, int]:
        """Continue from the newest checkpoint that the run may continue from."""
        self._is_alive(0, 0, 0, "reading a checkpoint")
        step, samples = self.checkpoints.restore(self.engine, self._say)
        if self.monitor is not None:
            self.monitor.start(step)
            detector.reset(self.monitor.log, step)
            if not self._counted:
                self._counted = {one.name: count_tokens(one, self.token_bytes) for one in self.validation}
        return step, samples

    def _step(self, step: int, samples: int) -> Outcome:
        """Train on the next batch."""
        config, started = self.config, time.perf_counter()
        batch = config.batch_size()(samples)
        numbers, after = self.skips.numbers(samples, batch), self.skips.end_of(samples, batch)
        if self.engine.train_batch_size() != batch:
            self.engine.set_train_batch_size(batch)
        rate = config.learning_rate()(samples)
        for group in self.engine.optimizer.param_groups:
            group["lr"] = rate
        # Matrices; see train.optimizer.
        self.engine.optimizer.param_groups[0]["weight_decay"] = config.decay_of_weights()(samples)
        loss = float(self.engine.train_batch(self._begin_batches(self.training, numbers)))
        norm = float(self.engine.get_global_grad_norm())
        return Outcome(numbers, after, loss, norm, rate, time.perf_counter() - started)

    def _judge(self, detector: SpikeDetector, outcome: Outcome) -> tuple[bool, str]:
        """Whether the step was out of the ordinary: the leading process decides, all know."""
        reason = None
        if self.monitor is not None and not skipped_step(self.config.precision, self.engine):
            reason = detector.judge(outcome.loss, outcome.norm)
        return agree([reason is not None], self.place.device)[0], reason or ""

    def _goes_back(self, step: int, outcome: Outcome, reason: str) -> bool:
        """Note the incident; whether the run has been set to go on from before it, without its samples.

        Raises TrainingError if the loss is no number and the run does not go back, or has gone back too often.
        """
        spikes, numbers = self.config.operations.spikes, outcome.numbers
        broken = not np.isfinite([outcome.loss, outcome.norm]).all()
        where = f"in step {step}, which read samples {numbers[0]} to {numbers[-1]}"
        documents, path = [], None
        if self.monitor is not None:
            documents = documents_of(self.training, numbers)
            path = note_incident(self.folder, step, reason, numbers, documents)
            if not broken:
                self.monitor.incident(step, outcome.after, f"{reason} ({where}; see {path.name} in incidents)")
        going = spikes.action == "rollback"
        done = len(rolled_back(self.folder)) if going else 0
        if (going and done >= spikes.most_rollbacks) or (broken and not going):
            of_documents = f" of {names(documents)}" if documents else ""
            hint = "Lower train.lr or use more train.warmup_samples; a run continues from its last checkpoint."
            if going:
                hint = f"It went back {done} times already (operations.spikes.most_rollbacks)."
            raise TrainingError(
                f"the loss became {outcome.loss} (gradient norm {outcome.norm}) {where}{of_documents}.",
                where=str(path) if path else None,
                hint=hint,
            )
        if not going:
            return False
        first = max(0, int(numbers[0]) - spikes.margin_samples)
        end = int(numbers[-1]) + 1 + spikes.margin_samples
        self.checkpoints.wait()
        dist.barrier()  # all have read what was rolled back before
        if self.place.leads:
            note_roll_back(self.folder, {"first": first, "end": end, "step": step, "reason": reason})
        self.skips = self.skips.and_also(first, end)
        self.checkpoints.skip([list(one) for one in self.skips.ranges])
        self._say(f"Going back and passing over samples {first} to {end - 1}: {reason}.")
        return True

    def _save(self, step: int, samples: int, *, keep: bool) -> None:
        """Save; with `keep` this checkpoint and the one before stay for good."""
        if keep:
            self.checkpoints.keep_newest()
        self.checkpoints.save(self.engine, step, samples)
        if keep:
            self.checkpoints.keep_newest()
        if self.monitor is not None:
            warning = space_warning(self.checkpoints.folder, self.checkpoints.needed_bytes)
            if warning is not None:
                self.monitor.say(f"step {step}  {warning}")

    def _wants_snapshot(self, step: int) -> bool:
        """Whether the checkpoint before this step and the state after it are to be kept: once for one spike."""
        spikes = self.config.operations.spikes
        if spikes.action != "snapshot" or step - self._snapshot <= spikes.window:
            return False
        self._snapshot = step
        return True

    def _stop_reason(self) -> str | None:
        if self.stops is None:
            return None
        own = self.stops.reason(leads=self.place.leads)
        return (own or "another process was asked to") if agree([own is not None], self.place.device)[0] else None

    def _report(self, step: int, outcome: Outcome, last: int) -> None:
        if self.monitor is not None:
            packed = packed_source(self.training)
            self.monitor.step(
                step,
                outcome.after,
                len(outcome.numbers) * self.config.sequence_length,
                outcome.seconds,
                last if self.stop_after is None else self._total,
                loss=outcome.loss,
                gradient_norm=outcome.norm,
                learning_rate=outcome.rate,
                global_batch=len(outcome.numbers),
                **({} if packed is None else {"labels": packed.labels(outcome.numbers)}),
            )

    def _name_slow_processes(self, step: int) -> None:
        slow = slow_processes(self.place.device, self.config.operations.slow_factor)
        if slow:
            self._say(f"step {step}  slower than the others: {', '.join(slow)}")

    def _evaluate(self, step: int, samples: int) -> None:
        if not self.validation:
            return
        unit = self.config.micro_batch * self.place.layout.data
        losses = {}
        for one in self.validation:
            batches = self._begin_batches(one.source, np.arange(one.samples))
            losses[one.name] = float(self.engine.eval_batch(batches, num_micro_batches=one.samples // unit))
        if self.monitor is not None:
            found = {name: (loss, self._counted[name]) for name, loss in losses.items()}
            self.monitor.validation(step, samples, found)

    def _starts_of(self, source: SampleSource) -> StartsOf | None:
        if not self.config.attention_within_documents:
            return None
        return document_starts(source, self.config.sequence_length)

    def _begin_batches(self, source: SampleSource, numbers: npt.NDArray[np.int64]) -> Any:
        """Tell the model what the next step or evaluation reads; returns what this process reads of it, if anything."""
        micro_batch = self.config.micro_batch
        labels = labels_of_micro_batch(source, numbers, micro_batch)
        self.engine.module.begin_step(numbers, self._starts_of(source), labels)
        if not self.place.reads_data:
            return None
        return micro_batches(source, numbers, micro_batch, self.place.data_rank, self.place.layout.data)

    def _is_alive(self, step: int, samples: int, last: int, doing: str) -> None:
        self.facts.update(step=step, samples=samples, last_step=last, doing=doing)
        if self.watchdog is not None:
            self.watchdog.progress(doing)

    def _say(self, text: str) -> None:
        if self.monitor is not None:
            self.monitor.say(text)
