"""A job: a recipe, a mixture and a number of processes, checked against each other and then trained.

`plan` runs once, before any process is started, so that mistakes cost seconds; `work` runs in every process.
Reads RUN/mixture and RUN/tokenizer, writes RUN/model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixtures.dataset import BlendedDataset
from mixtures.lock import check_files, check_inputs, read_lock
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import note_history, read_manifest, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.recipe import load_section
from roots_pipeline.core.storage import fingerprint
from train.config import RECIPES, TrainConfig
from train.model.shape import model_flops_per_token, parameter_count
from train.parallel.layout import Layout
from train.saved import check_continues, newest_complete
from train.skips import Skips, count_steps
from train.validation import ValidationSet, open_validation, token_bytes


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
        """The samples that are passed over."""
        return self.config.skips()


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
    check_files(lock, str(run / "mixture"))
    vocabulary = int(tokenizer.counts["padded_vocab_size"])
    config.check_vocabulary(vocabulary)
    job = Job(run, config, layout, vocabulary, lock.fingerprint, tokenizer.fingerprint)
    saved = newest_complete(job.checkpoints, lambda _: None, hashes=False)
    if saved is not None:
        check_continues(saved, job.identity())
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


def work(job: Job, progress: Progress, stop_after: int | None = None) -> None:
    """Train as one of the processes; `stop_after` limits the steps of this call."""
    from train.checkpoint import Checkpoints
    from train.engine import build_engine
    from train.launch import flush_denormals
    from train.loop import Trainer
    from train.monitor import Monitor, matmul_peak
    from train.parallel.topology import connect

    started, config = time.time(), job.config
    flush_denormals()
    place = connect(job.layout)
    training, validation = job.sources()
    engine = build_engine(config, job.vocabulary, place)
    shape = config.shape(job.vocabulary)
    peak = matmul_peak(place.device, config.precision)
    monitor = None
    if place.leads:
        job.folder.mkdir(parents=True, exist_ok=True)
        progress.say(
            f"Training a {shape.title} of {parameter_count(shape):,} parameters on {job.layout.processes} "
            f"process{'es' * (job.layout.processes > 1)} ({job.layout}), {config.precision} on {place.device}.",
            parameters=parameter_count(shape),
        )
        monitor = Monitor(
            job.folder,
            progress,
            log_every=config.log_every,
            peak=peak,
            flops_per_token=model_flops_per_token(shape, config.sequence_length),
        )
    checkpoints = Checkpoints(
        job.checkpoints,
        place,
        job.identity(),
        keep=config.keep,
        keep_every=config.keep_every,
        keep_hours=config.keep_hours,
        background=config.save_in_background,
    )
    lengths = token_bytes(job.run / "tokenizer" / "tokenizer.json") if place.leads else None
    trainer = Trainer(
        config, engine, place, training, validation, checkpoints, monitor, stop_after, lengths, job.skips
    )  # fmt: skip
    step, samples = trainer.run()
    if place.leads:
        if step == job.steps:
            counts = {
                "steps": step,
                "samples": samples,
                "tokens": samples * config.sequence_length,
                "parameters": parameter_count(shape),
            }
            write_manifest(
                str(job.folder),
                "train",
                config=config.model_dump(mode="json"),
                inputs={"mixture": job.mixture},
                counts=counts,
                fingerprint=fingerprint(job.identity()),
                seeds={"model": config.seed},
            )
        note_history(str(job.folder), started, step=step, samples=samples, processes=job.layout.processes)
