"""A run of two nodes with a third one standing by: FOLDER/run, and in FOLDER/lives who took part.

Each process belongs to a torchrun of its own, which stands for a node. In the first life the node that leads dies as a
whole, agent and process, in step 6.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.train.scenario import MadeUpText, settings, train

CHANGES = {"save_every": 2, "validation_samples": 0, "dropout": 0.1}
FATAL_SAMPLE = 20  # the first one that process 0 reads in step 6


class Fatal(MadeUpText):
    def __init__(self, died: Path) -> None:
        super().__init__(16)
        self.died = died

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        if index == FATAL_SAMPLE and os.environ["RANK"] == "0" and not self.died.exists():
            self.died.write_text(str(os.getppid()))
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    died = folder / "died"
    lives = folder / "lives"
    lives.mkdir(exist_ok=True)
    (lives / f"{int(died.exists())}.{os.environ['RANK']}").write_text(str(os.getppid()))
    train(settings(**CHANGES), folder / "run", processes=2, source=Fatal(died), watched=True)
