"""Kill a process of a training run at random moments, half of them during a save; compare digits with a calm run.

    python -m tests.train.kills [--kills 60] [--seed 1] FOLDER

Two processes train a tiny model that is saved in the background after every step, in turn data-, tensor- and
pipeline-parallel. A random one of them gets SIGKILL at a random moment, or a random time after the hidden folder of a
save appeared; the other is ended as torchrun would. The same command starts again, until the run has finished; then its
log and its weights must be those of a run that nobody disturbed, digit for digit. After every kill the newest complete
checkpoint is noted: none may be lost. Prints a table, exit code 1 on any difference.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from tests.train import forked
from tests.train.scenario import VOCABULARY, numbers, settings, train
from train.config import TrainConfig
from train.export import published_parameters
from train.saved import HIDDEN, newest_complete

LAYOUTS: dict[str, dict[str, Any]] = {
    "data": {},
    "tensor": {"tensor_parallel": 2},
    "pipeline": {"pipeline_parallel": 2},
}
STEPS = 10


def config(layout: str) -> TrainConfig:
    return settings(steps=STEPS, save_every=1, evaluate_every=0, validation_samples=0, dropout=0.1, **LAYOUTS[layout])


class Killer:
    """Sends one SIGKILL while workers run; `moment` in seconds after their start, or after a save's folder appears."""

    def __init__(self, pids: list[int], dice: random.Random, checkpoints: Path, seconds: float) -> None:
        self.rank, self.during_save = dice.randrange(len(pids)), dice.random() < 0.5
        self._pid, self._checkpoints = pids[self.rank], checkpoints
        self._moment = time.monotonic() + (dice.uniform(0.0, seconds) if not self.during_save else 0.0)
        self._after = dice.uniform(0.0, 0.04)
        self._patience = dice.randrange(1, STEPS)  # saves that are left alone
        self._seen: set[str] = set()
        self.caught: str | None = None

    def __call__(self) -> None:
        if self.caught is not None:
            return
        writing = {path.name for path in self._checkpoints.glob(f"{HIDDEN}*")}
        if self.during_save:
            new = writing - self._seen
            self._seen |= writing
            self._patience -= len(new)
            if not new or self._patience > 0:
                return
            time.sleep(self._after)
        elif time.monotonic() < self._moment:
            return
        unfinished = any(self._checkpoints.glob(f"{HIDDEN}*"))
        try:
            os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.caught = "while a save was unfinished" if unfinished else "between saves"


def result(folder: Path) -> tuple[list[tuple[float, ...]], dict[str, bytes]]:
    """The log's digits and the bytes of all weights of a finished run."""
    saved = newest_complete(folder / "checkpoints", print)
    assert saved is not None and saved.step == STEPS, f"{folder} has not finished"
    log = [orjson.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]
    return numbers(log), {name: value.numpy().tobytes() for name, value in published_parameters(saved, VOCABULARY)}


def newest_step(folder: Path) -> int:
    saved = newest_complete(folder / "checkpoints", lambda _: None)
    return saved.step if saved else 0


def attack(folder: Path, layout: str, kills: int, dice: random.Random, table: Counter[str]) -> int:
    """Runs of one layout under `kills` kills; returns how many of them differ from the calm one."""
    work = {name: partial(train, config(layout), folder / layout / name, processes=2) for name in ("calm", "stormy")}
    began = time.monotonic()
    forked.run(2, work["calm"])
    seconds, calm = time.monotonic() - began, result(folder / layout / "calm")
    stormy, differences, landed, reached = folder / layout / "stormy", 0, 0, 0
    while landed < kills or stormy.exists():
        pids = forked.start(2, work["stormy"])
        killer = Killer(pids, dice, stormy / "checkpoints", seconds) if landed < kills else None
        finished = forked.wait(pids, killer or (lambda: None))
        if killer is not None and killer.caught is not None and not finished:
            landed += 1
            table[f"{layout}: process {killer.rank} {killer.caught}"] += 1
            now = newest_step(stormy)
            if now < reached:
                differences += 1
                print(f"{layout}: the checkpoint of step {reached} was lost", flush=True)
            reached = now
            continue
        if not finished:
            sys.exit(f"{layout}: a run failed by itself")
        differences += result(stormy) != calm
        shutil.rmtree(stormy)
        reached = 0
        table[f"{layout}: runs finished and compared"] += 1
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    dice, table, differences = random.Random(options.seed), Counter[str](), 0
    layouts = list(LAYOUTS)
    for number, layout in enumerate(layouts):
        share = options.kills // len(layouts) + (number < options.kills % len(layouts))
        differences += attack(options.folder, layout, share, dice, table) if share else 0
    for line, count in sorted(table.items()):
        print(f"{count:4}  {line}")
    print(f"{differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
