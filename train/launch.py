"""Start the processes of a run on this machine and turn a failed one into one sentence.

A cluster starts its own processes (`torchrun ... -m train run ...` on every node); then nothing is started here.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from types import FrameType
from uuid import uuid4

import psutil

from roots_pipeline.core.errors import EngineError

HUNG = 3  # exit code of a process that its watchdog ended
USER_ERROR = 2  # exit code of a process that has already said what is wrong


def is_worker() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ


def world_size() -> int:
    """Processes of the whole run, as torchrun says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def share_processor() -> None:
    """Let idle threads sleep instead of spin, and take memory in large pages; works only before PyTorch is imported.

    Spinning threads win microseconds on an idle machine. On a busy one they take the time of the very threads they
    wait for: a run on two cores that other programs used as well took four times the CPU time.

    Every step allocates its activations and gradients anew. In pages of 2 MiB instead of 4 KiB that is 512 times fewer
    interruptions for the kernel.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def flush_denormals() -> None:
    """Let the CPU treat numbers below 1e-38 as zero; works only before PyTorch starts its threads, which inherit it.

    ALiBi makes the softmax of far positions that small, and a CPU multiplies such numbers a hundred times slower.
    """
    import torch

    torch.set_flush_denormal(True)


def run_workers(processes: int, command: list[str], *, restarts: int = 0) -> int:
    """Run `python -m command...` in `processes` processes that find each other; returns 0 or USER_ERROR.

    If one fails, all are started again, up to `restarts` times. SIGUSR1 is handed on to them.
    Raises EngineError if a process died without explaining itself.
    """
    # Imported here: a command that finds a mistake in a recipe need not wait for PyTorch.
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # Or processes that are started again find the addresses of the dead ones, and wait for them.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # its report repeats ours in twenty lines
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid4().hex,
        max_restarts=restarts,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        monitor_interval=0.2,
    )
    previous = signal.signal(signal.SIGUSR1, _hand_on)
    try:
        elastic_launch(config, sys.executable)("-m", *command)
    except SignalException as error:  # the processes have been told and have ended
        raise KeyboardInterrupt from error
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode == USER_ERROR:
            return USER_ERROR
        raise EngineError(
            f"process {rank} of {processes} {_how(failure.exitcode)}.",
            hint="Its own message is above. The same command continues from the last checkpoint.",
        ) from error
    finally:
        signal.signal(signal.SIGUSR1, previous)
    return 0


def _hand_on(number: int, frame: FrameType | None) -> None:
    """Send a signal to the processes of the run; others that were started here do not expect it."""
    for child in psutil.Process().children():
        try:
            if "RANK" in child.environ():
                child.send_signal(number)
        except psutil.Error:  # it has just ended
            continue


def _how(exit_code: int) -> str:
    if exit_code == HUNG:
        return "ended itself because nothing moved on; RUN/model/stacks tells where each process stood"
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    name = signal.Signals(-exit_code).name
    return f"was ended by {name}" + (" (often: the machine ran out of memory)" if name == "SIGKILL" else "")
