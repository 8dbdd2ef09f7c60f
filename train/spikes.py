"""Which losses and gradient norms are out of the ordinary, judged by the steps before.

The median of the last steps says what is ordinary and the median distance from it how much they scatter; neither is
moved by the spikes themselves. BLOOM's spike of April 2022 (loss 2.2 to 5.1, gradient norm 960) is far outside.
"""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from statistics import median

import orjson

from train.settings import SpikeConfig

_NORMAL = 1.4826  # median distance to standard deviation, for a normal distribution
_LEAST_SCATTER = 0.005  # of the median: losses that hardly scatter are no reason for alarm


class SpikeDetector:
    """Fed with every step's loss and gradient norm."""

    def __init__(self, config: SpikeConfig) -> None:
        self._config = config
        self._losses: deque[float] = deque(maxlen=config.window)
        self._norms: deque[float] = deque(maxlen=config.window)

    def reset(self, log: Path, step: int) -> None:
        """Begin again after `step`, with what the log says of the steps before: as if the run had not stopped."""
        self._losses.clear()
        self._norms.clear()
        if not log.is_file():
            return
        for line in log.read_bytes().splitlines():
            record = orjson.loads(line)
            loss, norm = record.get("loss"), record.get("gradient_norm")
            if loss is not None and norm is not None and record["step"] <= step:  # null: a step of fp16 left out
                self._remember(loss, norm)

    def judge(self, loss: float, norm: float) -> str | None:
        """Why this step is out of the ordinary, or None; the step is remembered."""
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return f"the loss is {loss}, the gradient norm {norm}"
        reason = None
        if self._config.action != "none" and len(self._losses) >= (self._config.window + 1) // 2:
            usual = median(self._losses)
            scatter = max(_NORMAL * median(abs(one - usual) for one in self._losses), _LEAST_SCATTER * usual)
            usual_norm = median(self._norms)
            if loss > usual + self._config.loss * scatter:
                reason = f"the loss of {loss:.4g} is far above the usual {usual:.4g}"
            elif norm > self._config.gradient_norm * usual_norm:
                reason = f"the gradient norm of {norm:.4g} is far above the usual {usual_norm:.4g}"
        self._remember(loss, norm)
        return reason

    def _remember(self, loss: float, norm: float) -> None:
        self._losses.append(loss)
        self._norms.append(norm)
