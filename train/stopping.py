"""Reasons for a run to save and stop before its end: a signal, a file, a time limit. All processes stop together.

SIGTERM and SIGUSR1 are what clusters send before an allocation ends. The kill switch is a file that anybody who may
write into the run's folder can make, without access to the nodes. A time limit ends the run before the cluster does.
Whatever one process notices, all act on after the same step.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType

import torch
import torch.distributed as dist

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
SWITCH = "STOP"


class StopRequests:
    """Watches for reasons to stop; `exit_minutes` counts from now."""

    def __init__(self, switch: Path, exit_minutes: float | None = None) -> None:
        self._switch, self._minutes = switch, exit_minutes
        self._deadline = None if exit_minutes is None else time.monotonic() + 60.0 * exit_minutes
        self._caught: str | None = None
        self._before: dict[signal.Signals, object] = {}

    def listen(self) -> None:
        """Catch signals from now on: the first asks for a stop, the second ends the process as if not caught."""
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._note)

    def close(self) -> None:
        """Leave signals to whoever had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._caught = signal.Signals(number).name
        self.close()

    def reason(self, *, leads: bool) -> str | None:
        """Why this process would stop now; only the leading one looks for the file and at the clock."""
        if self._caught is not None:
            return f"{self._caught} was received"
        if leads and self._deadline is not None and time.monotonic() >= self._deadline:
            return f"the {self._minutes:g} minutes of this call are over"
        if leads and self._switch.exists():
            return f"{self._switch} exists"
        return None


def agree(flags: list[bool], device: torch.device) -> list[bool]:
    """For each flag whether any process has raised it; all processes get the same answer."""
    together = torch.tensor(flags, dtype=torch.int32, device=device)
    dist.all_reduce(together, op=dist.ReduceOp.MAX)
    return [bool(one) for one in together.tolist()]
