"""A run of one or two nodes with another one standing by: FOLDER/run, and in FOLDER/lives who took part.

Each process belongs to a torchrun of its own, which stands for a node. In the first and in the second life the node
that leads dies as a whole, agent and process; in the third there is one node left.
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
FATAL_SAMPLES = (20, 28)  # those that process 0 reads first in steps 6 and 8, in one life after the other


class Fatal(MadeUpText):
    def __init__(self, folder: Path) -> None:
        super().__init__(16)
        self.folder = folder
        self.life = len(list(folder.glob("died.*")))

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        if index in FATAL_SAMPLES[self.life : self.life + 1] and os.environ["RANK"] == "0":
            (self.folder / f"died.{self.life}").write_text(str(os.getppid()))
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    source = Fatal(folder)
    (folder / "lives").mkdir(exist_ok=True)
    (folder / "lives" / f"{source.life}.{os.environ['RANK']}").write_text(str(os.getppid()))
    train(settings(**CHANGES), folder / "run", processes=int(os.environ["WORLD_SIZE"]), source=source, watched=True)
