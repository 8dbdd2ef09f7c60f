"""A job: a recipe, a mixture and a number of processes, checked against each other and then trained.

`plan` runs once, before any process is started, so that mistakes cost seconds; `work` runs in every process.
Reads RUN/mixture and RUN/tokenizer, writes RUN/model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixtures.dataset import BlendedDataset
from mixtures.lock import check_files, check_inputs, read_lock
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import note_history, read_manifest, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.recipe import load_section
from roots_pipeline.core.storage import fingerprint
from tokenizer.content import REMAKE_TOKENIZER, check_content
from train.config import RECIPES, TrainConfig
from train.incidents import all_skips
from train.model.shape import checkpoint_bytes, hardware_flops_per_token, model_flops_per_token, parameter_count
from train.parallel.layout import Layout
from train.planner.hardware import load_hardware
from train.same_data import check_same_lock, remember_lock
from train.saved import newest_complete, newest_first, newest_to_continue
from train.skips import Skips, count_steps
from train.validation import ValidationSet, open_validation, token_bytes

if TYPE_CHECKING:
    from train.checkpoint import Checkpoints
    from train.monitor import Monitor
    from train.parallel.topology import Place


@dataclass(frozen=True, slots=True)
class Job:
    """What to train on what. `vocabulary` counts the rows of the embedding, padding included."""

    run: Path
    config: TrainConfig
    layout: Layout
    vocabulary: int
    mixture: str  # fingerprint of the lock
    tokenizer: str  # fingerprint of tokenizer.json

    @property
    def folder(self) -> Path:
        return self.run / "model"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def kill_switch(self) -> Path:
        """The file that makes the run save and stop."""
        named = self.config.operations.kill_switch
        return Path(named) if named else self.folder / "STOP"

    @property
    def lock(self) -> str:
        return str(self.run / "mixture" / "mixture.lock.yaml")

    def identity(self) -> dict[str, Any]:
        """All that decides the numbers of the run; see TrainConfig.identity."""
        data = {"mixture": self.mixture, "tokenizer": self.tokenizer, "vocabulary": self.vocabulary}
        return {**self.config.identity(), **data, "skip_samples": [list(one) for one in self.skips.ranges]}

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return count_steps(self.config.batch_size(), self.skips, self.config.train_samples)

    def sources(self) -> tuple[BlendedDataset, list[ValidationSet]]:
        """Training samples, and the validation sets that the recipe wants."""
        config = self.config
        length, samples = config.sequence_length, config.validation_samples
        training = BlendedDataset(self.lock, "train", config.train_samples, sequence_length=length)
        groups, group_samples = config.validation_groups, config.validation_group_samples
        return training, open_validation(self.lock, length, samples, groups, group_samples)

    @property
    def skips(self) -> Skips:
        """The samples that are passed over, because the recipe says so or after a roll-back."""
        return all_skips(self.folder, self.config.skips())


def plan(recipe: str, run: Path, processes: int | None) -> Job:
    """Check recipe, mixture, tokenizer, processes and earlier checkpoints against each other.

    Without `processes` it is planned for one copy of the model.
    Raises RecipeError, StaleDataError, MixtureError or TrainingError, each naming what to change.
    """
    config = load_section(recipe, "train", TrainConfig, RECIPES)
    layout = config.layout(processes or config.tensor_parallel * config.pipeline_parallel)
    lock = read_lock(str(run / "mixture" / "mixture.lock.yaml"))
    tokenizer = read_manifest(str(run / "tokenizer"), made_by="python -m tokenizer train")
    check_inputs(lock, corpus=_corpus(run), tokenizer=tokenizer.fingerprint)
    check_content(
        str(run / "tokenizer" / "tokenizer.json"), tokenizer.files["tokenizer.json"]["xxh3"], REMAKE_TOKENIZER
    )
    check_files(lock, str(run / "mixture"))
    vocabulary = int(tokenizer.counts["padded_vocab_size"])
    config.check_vocabulary(vocabulary)
    job = Job(run, config, layout, vocabulary, lock.fingerprint, tokenizer.fingerprint)
    if config.operations.gpu:
        load_hardware(config.operations.gpu).peak(config.precision)
    if any(newest_first(job.checkpoints)):
        check_same_lock(job.folder, lock)
    newest_to_continue(job.checkpoints, job.identity())
    return job


def _corpus(run: Path) -> str | None:
    """Fingerprint of the corpus; None if the mixture was carried here without it."""
    folder = run / "corpus"
    return read_manifest(str(folder)).fingerprint if (folder / "manifest.json").is_file() else None


def is_finished(job: Job, say: Callable[[str], None]) -> bool:
    """Whether RUN/model already holds the end of exactly this job, its last checkpoint included.

    A finished run that has lost its last checkpoint is not finished: `say` is told, and the missing steps are trained
    again.
    """
    try:
        manifest = read_manifest(str(job.folder))
    except StaleDataError:
        return False
    if manifest.fingerprint != fingerprint(job.identity()):
        return False
    saved = newest_complete(job.checkpoints, say)
    if saved is not None and saved.step >= job.steps:
        return True
    say(
        f"This run had finished, but there is no complete checkpoint of its last step {job.steps}; the steps after "
        f"{saved.step if saved else 0} are trained again."
    )
    return False


def work(
    job: Job, progress: Progress, stop_after: int | None = None, exit_minutes: float | None = None
) -> None:
    """Train as one of the processes; `stop_after` and `exit_minutes` limit the steps and the time of this call."""
    from train.engine import build_engine
    from train.launch import flush_denormals
    from train.loop import Trainer
    from train.monitor import matmul_peak
    from train.parallel.topology import connect
    from train.stopping import StopRequests
    from train.watchdog import Watchdog, heartbeat, neighbours

    started, config, facts = time.time(), job.config, dict[str, Any]()
    watch, stops = config.operations, StopRequests(job.kill_switch, exit_minutes)
    flush_denormals()
    place = connect(job.layout, watch.collective_minutes)
    stops.listen()
    monitor: Monitor | None = None
    beat = heartbeat(job.folder, lambda: facts) if place.leads else None
    watchdog = Watchdog(
        job.folder, place.rank, 60.0 * watch.hang_minutes, neighbours(), beat, watch.heartbeat_seconds
    )  # fmt: skip
    watchdog.start()
    try:
        training, validation = job.sources()
        engine = build_engine(config, job.vocabulary, place)
        peak = matmul_peak(place.device, config.precision)
        if place.leads:
            remember_lock(job.folder, read_lock(job.lock))
            monitor = _monitor(job, progress, peak, place.device.type)
        lengths = token_bytes(job.run / "tokenizer" / "tokenizer.json") if place.leads else None
        trainer = Trainer(
            config, engine, place, training, validation, _checkpoints(job, place), monitor, stop_after, lengths,
            job.skips, stops, watchdog, facts,
        )  # fmt: skip
        step, samples = trainer.run()
    finally:
        watchdog.stop()
        stops.close()
    if place.leads:
        if step == job.steps:
            _finish(job, step, samples, training)
        note_history(str(job.folder), started, step=step, samples=samples, processes=job.layout.processes)


def _monitor(job: Job, progress: Progress, peak: float, device: str) -> Monitor:
    from train.monitor import Monitor

    config, processes = job.config, job.layout.processes
    shape = config.shape(job.vocabulary)
    job.folder.mkdir(parents=True, exist_ok=True)
    progress.say(
        f"Training a {shape.title} of {parameter_count(shape):,} parameters on {processes} "
        f"process{'es' * (processes > 1)} ({job.layout}), {config.precision} on {device}.",
        parameters=parameter_count(shape),
    )
    recomputed = config.activation_checkpointing == "full"
    return Monitor(
        job.folder,
        progress,
        log_every=config.log_every,
        peak=peak,
        flops_per_token=model_flops_per_token(shape, config.sequence_length),
        hardware_flops_per_token=hardware_flops_per_token(shape, config.sequence_length, recomputed=recomputed),
        processes=processes,
        device_peak=load_hardware(gpu).peak(config.precision) if (gpu := config.operations.gpu) else None,
        wandb=config.operations.wandb,
    )


def _checkpoints(job: Job, place: Place) -> Checkpoints:
    from train.checkpoint import Checkpoints

    config = job.config
    return Checkpoints(
        job.checkpoints,
        place,
        job.identity(),
        keep=config.keep,
        keep_every=config.keep_every,
        keep_hours=config.keep_hours,
        background=config.save_in_background,
        needed_bytes=checkpoint_bytes(parameter_count(config.shape(job.vocabulary)), config.precision),
    )


def _finish(job: Job, step: int, samples: int, training: BlendedDataset) -> None:
    """The manifest of a run that has come to its end; `tokens` are inputs, of packed samples padding too."""
    config, skipped = job.config, job.skips.below(samples)
    trained = samples - sum(end - first for first, end in skipped)
    counts = {
        "steps": step,
        "samples": trained,
        "tokens": trained * config.sequence_length,
        "parameters": parameter_count(config.shape(job.vocabulary)),
    }
    if training.packed:
        counts["labels"] = training.labels(range(samples)) - sum(training.labels(range(*one)) for one in skipped)
    write_manifest(
        str(job.folder),
        "train",
        config=config.model_dump(mode="json"),
        inputs={"mixture": job.mixture},
        counts=counts,
        fingerprint=fingerprint(job.identity()),
        seeds={"model": config.seed},
    )
