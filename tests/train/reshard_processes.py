"""Training that is stopped in one layout and continued in others, as one of several processes.

Eight processes train the first three steps of a BLOOM and a Gopher in the layout 2x2x2; then four processes go on from
there to the end, in each layout of four. Logs lie in FOLDER/<model>/<layout>.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tests.train import forked
from tests.train.scenario import settings, train
from train.config import TrainConfig

LAYOUTS = {"data 4": {}, "tensor 4": {"tensor_parallel": 4}, "pipeline 4": {"pipeline_parallel": 4}}
KINDS = ("bloom", "gopher")


def config(kind: str, **layout: int) -> TrainConfig:
    """A run of six steps, with dropout, of a model that can be cut into four in every direction."""
    model: dict[str, Any] = {"kind": kind, "hidden": 32, "layers": 6, "heads": 4, "init_std": 0.05}
    return settings(
        model=model,
        steps=6,
        global_batch=8,
        validation_samples=8,
        save_every=0,
        evaluate_every=3,
        dropout=0.1,
        **layout,
    )


def begin(folder: Path) -> None:
    """What each of eight processes does."""
    for kind in KINDS:
        changed = config(kind, tensor_parallel=2, pipeline_parallel=2)
        train(changed, folder / kind / "start", processes=8, stop_after=3)


def go_on(folder: Path) -> None:
    """What each of four processes does."""
    for kind in KINDS:
        for name, layout in LAYOUTS.items():
            train(config(kind, **layout), folder / kind / name, processes=4)


def main(folder: Path) -> None:
    forked.run(8, partial(begin, folder))
    for kind in KINDS:
        for name in LAYOUTS:
            shutil.copytree(folder / kind / "start", folder / kind / name)
    forked.run(4, partial(go_on, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
