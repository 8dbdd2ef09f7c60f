"""Tiny training runs on made-up text, in one process or as one of several."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from roots_pipeline.core.progress import Progress
from train.checkpoint import Checkpoints
from train.config import TrainConfig
from train.data import Numbers, SampleSource
from train.engine import build_engine
from train.incidents import all_skips
from train.loop import Trainer
from train.monitor import Monitor
from train.parallel.topology import Place, connect
from train.stopping import StopRequests
from train.validation import ValidationSet
from train.watchdog import Watchdog, neighbours

VOCABULARY = 96


class MadeUpText:
    """Sample i follows from i alone: every second token is a function of the one before, the rest is random."""

    def __init__(self, length: int, distinct: int = 10**6) -> None:
        self.length, self.distinct = length, distinct

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        random = np.random.default_rng(index % self.distinct)
        tokens = random.integers(0, VOCABULARY, self.length + 1)
        tokens[1::2] = (tokens[0:-1:2] * 5 + 1) % VOCABULARY
        return tokens.astype(np.int64)

    def boundaries(self, index: int) -> npt.NDArray[np.int64]:
        """Up to four documents, drawn from the number as well."""
        random = np.random.default_rng([index, 1])
        inside = np.sort(random.choice(np.arange(1, self.length + 1), index % 4, replace=False))
        return np.concatenate([[0], inside, [self.length + 1]]).astype(np.int64)


class PackedText(MadeUpText):
    """Packed samples of very different fill, down to one token, with pieces that continue documents."""

    packed = True

    def __init__(self, length: int, padding: int = 2) -> None:
        super().__init__(length)
        self.padding = padding

    def real(self, index: int) -> int:
        """Tokens before the padding; every third sample is full."""
        if index % 3 == 0:
            return self.length + 1
        return int(np.random.default_rng([index, 2]).integers(1, self.length + 1))

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        tokens = super().__getitem__(index)
        tokens[self.real(index) :] = self.padding
        return tokens

    def boundaries(self, index: int) -> npt.NDArray[np.int64]:
        """The borders of `MadeUpText` before the padding, which is a piece of its own."""
        inside = [cut for cut in super().boundaries(index)[1:-1] if cut < self.real(index)]
        return np.unique([0, *inside, self.real(index), self.length + 1]).astype(np.int64)

    def counted(self, index: int) -> npt.NDArray[np.bool_]:
        """No padding, and every second piece continues a document."""
        mask: npt.NDArray[np.bool_] = np.arange(1, self.length + 1) < self.real(index)
        mask[self.boundaries(index)[1:-1][::2] - 1] = False
        return mask

    def labels(self, numbers: Numbers) -> int:
        return sum(int(self.counted(int(number)).sum()) for number in numbers)


def settings(**changes: Any) -> TrainConfig:
    """A run of eight steps of a model with two layers."""
    steps, batch = changes.pop("steps", 8), changes.pop("global_batch", 4)
    values: dict[str, Any] = {
        "model": {"hidden": 32, "layers": 2, "heads": 4, "init_std": 0.05},
        "sequence_length": 16,
        "micro_batch": 2,
        "global_batch": batch,
        "train_samples": steps * batch,
        "lr": 5e-3,
        "min_lr": 5e-4,
        "warmup_samples": batch,
        "precision": "fp32",
        "clip": 0.5,
        "validation_samples": 4,
        "evaluate_every": 4,
        "save_every": 3,
    }
    return TrainConfig.model_validate(values | changes)


def make_trainer(
    config: TrainConfig,
    folder: Path,
    *,
    processes: int = 1,
    stop_after: int | None = None,
    source: SampleSource | None = None,
    place: Place | None = None,
    watched: bool = False,
    vocabulary: int = VOCABULARY,
) -> Trainer:
    place = place or connect(config.layout(processes), config.operations.collective_minutes)
    engine = build_engine(config, vocabulary, place)
    monitor = None
    if place.leads:
        folder.mkdir(parents=True, exist_ok=True)
        silent = Progress(quiet=True, stream=io.StringIO())
        monitor = Monitor(folder, silent, log_every=1, peak=1e12, flops_per_token=1.0)
    checkpoints = Checkpoints(
        folder / "checkpoints",
        place,
        {**config.identity(), "skip_samples": [list(one) for one in all_skips(folder, config.skips()).ranges]},
        keep=config.keep,
        background=config.save_in_background,
    )
    training, lengths = source or MadeUpText(config.sequence_length), np.full(vocabulary, 2)
    held_out = training if isinstance(training, PackedText) else MadeUpText(config.sequence_length)
    validation = [ValidationSet("blend", held_out, config.validation_samples)] if config.validation_samples else []
    stops = watchdog = None
    if watched:
        stops = StopRequests(folder / "STOP")
        stops.listen()
        watchdog = Watchdog(folder, place.rank, 60 * config.operations.hang_minutes, neighbours())
        watchdog.start()
    return Trainer(
        config, engine, place, training, validation, checkpoints, monitor, stop_after, lengths,
        all_skips(folder, config.skips()), stops, watchdog,
    )  # fmt: skip


def train(config: TrainConfig, folder: Path, **more: Any) -> list[dict[str, Any]]:
    """Run and return the log of the leading process: one record per step and validation."""
    trainer = make_trainer(config, folder, **more)
    trainer.run()
    if trainer.stops is not None and trainer.watchdog is not None:
        trainer.stops.close()
        trainer.watchdog.stop()
    log = folder / "log.jsonl"
    return [orjson.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


def numbers(records: list[dict[str, Any]]) -> list[tuple[float, ...]]:
    """What a run computes, without its times."""
    keys = ("step", "samples", "loss", "gradient_norm", "learning_rate", "global_batch", "validation_loss")
    return [tuple(record[key] for key in keys if key in record) for record in records]
