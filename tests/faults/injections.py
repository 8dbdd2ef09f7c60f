"""The faults. Each disturbs one run and returns how that ended; afterwards its cause is gone, so a run must succeed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.runs import Ended, Run, workers_of

# A disturbed run may finish, be refused with a sentence, or end by the signal it got; all else is a fault of ours.
ALLOWED = {
    "kill": {0, -9}, "kill worker": {0, 2}, "SIGTERM": {0, 143}, "SIGINT": {0, 130}, "two signals": {0, -15, 143},
    "full disk": {0, 2}, "cut stage file": {0, 2, -9}, "flipped bytes": {0, 2}, "cut input": {0, 2},
}
Fault = Callable[[Run, float, random.Random], Ended]


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process still runs after so long."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def kill(run: Run, seconds: float, dice: random.Random) -> Ended:
    """SIGKILL for all processes at once."""
    process = run.start()
    if _wait(process, dice.uniform(0.1, seconds)):
        os.killpg(process.pid, signal.SIGKILL)
    return run.end(process)


def kill_worker(run: Run, seconds: float, dice: random.Random) -> Ended:
    """SIGKILL for one worker process, as the kernel does when memory runs out."""
    process = run.start()
    if _wait(process, dice.uniform(seconds / 3, seconds)) and (found := workers_of(process)):
        os.kill(dice.choice(found), signal.SIGKILL)
    return run.end(process)


def _signal(number: signal.Signals) -> Fault:
    def fault(run: Run, seconds: float, dice: random.Random) -> Ended:
        process = run.start()
        if _wait(process, dice.uniform(seconds / 4, seconds)) and run.begun(process):
            os.killpg(process.pid, number)
        return run.end(process)

    return fault


def two_signals(run: Run, seconds: float, dice: random.Random) -> Ended:
    """SIGTERM and soon another one."""
    process = run.start()
    if _wait(process, dice.uniform(seconds / 4, seconds)) and run.begun(process):
        for pause in (dice.uniform(0, 0.3), 0):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            time.sleep(pause)
    return run.end(process)


def full_disk(run: Run, seconds: float, dice: random.Random) -> Ended:
    """A disk with little or no space left (the run folder is a file system of its own)."""
    filler = run.folder / "filler"
    free = shutil.disk_usage(run.folder).free
    with open(filler, "wb") as out:
        os.posix_fallocate(out.fileno(), 0, max(1, free - dice.choice([0, 8 << 10, 200 << 10, 1 << 20])))
    ended = run.end(run.start())
    filler.unlink()
    return ended


def _a_file(run: Run, dice: random.Random, pattern: str) -> Path | None:
    found = sorted(path for path in run.output.rglob(pattern) if path.is_file() and path.stat().st_size > 8)
    return dice.choice(found) if found else None


def cut_stage_file(run: Run, seconds: float, dice: random.Random) -> Ended:
    """A file of the run loses its end between two runs."""
    if path := _a_file(run, dice, "*.*"):
        os.truncate(path, dice.randrange(path.stat().st_size))
    return kill(run, seconds, dice)


def flip_bytes(run: Run, seconds: float, dice: random.Random) -> Ended:
    """A stage file keeps its size, but some of its bytes change."""
    if path := _a_file(run, dice, ".work/*/*.parquet"):
        data = bytearray(path.read_bytes())
        at = dice.randrange(len(data) - 4)
        data[at : at + 4] = bytes(byte ^ 0x5A for byte in data[at : at + 4])
        path.write_bytes(data)
    return run.end(run.start())


def cut_input(run: Run, seconds: float, dice: random.Random) -> Ended:
    """An input file loses its end during a run, and is put back afterwards."""
    inputs = sorted((Path(run.recipe).parent / "input").iterdir())
    path = dice.choice(inputs)
    whole = path.read_bytes()
    process = run.start()
    _wait(process, dice.uniform(0, seconds))
    os.truncate(path, dice.randrange(len(whole)))
    ended = run.end(process)
    path.write_bytes(whole)
    return ended


FAULTS: dict[str, Fault] = {
    "kill": kill, "kill worker": kill_worker, "SIGTERM": _signal(signal.SIGTERM), "SIGINT": _signal(signal.SIGINT),
    "two signals": two_signals, "full disk": full_disk, "cut stage file": cut_stage_file, "flipped bytes": flip_bytes,
    "cut input": cut_input,
}
# Of other steps than the corpus, only processes are disturbed.
ANY_STEP = ("kill", "kill worker", "SIGTERM", "SIGINT", "two signals")
