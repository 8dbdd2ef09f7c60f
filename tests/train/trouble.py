"""A run of two processes that is killed and started again, then stopped in its tracks: FOLDER/run.

The launcher starts all processes again after a failure. In the first life process 1 kills itself in step 5; in the
second it stops (as by Ctrl-Z) in step 7, until the watchdog of the other one ends the job.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.train.scenario import MadeUpText, settings, train

LIVES = {"0": (18, signal.SIGKILL), "1": (26, signal.SIGSTOP)}  # sample of process 1 that brings the signal
HANG_SECONDS = 6.0  # more than any step takes on a busy machine
CHANGES = {"save_every": 2, "validation_samples": 0, "dropout": 0.1, "tensor_parallel": 1}


class Troubled(MadeUpText):
    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        sample, number = LIVES.get(os.environ["TORCHELASTIC_RESTART_COUNT"], (-1, signal.SIGKILL))
        if index == sample and os.environ["RANK"] == "1":
            os.kill(os.getpid(), number)
        return super().__getitem__(index)


if __name__ == "__main__":
    config = settings(**CHANGES, operations={"hang_minutes": HANG_SECONDS / 60})
    train(config, Path(sys.argv[1]) / "run", processes=2, source=Troubled(16), watched=True)
