"""Small clusters on this machine for the tests of engines: every part is a process of its own, ended at the end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process group that runs in this block; `python` is the interpreter of this one."""
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(PROJECT),
    }
    with open(log, "wb") as out:
        started = subprocess.Popen(["python", *command], stdout=out, stderr=subprocess.STDOUT, cwd=PROJECT,
                                   env=environment, start_new_session=True)
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        number: int = found.getsockname()[1]
        return number


def wait_for_port(port: int, started: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and started.poll() is None:
        with suppress(OSError), socket.create_connection(("localhost", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"nobody listens on port {port}")


@dataclass(frozen=True)
class PortableServices:
    """A job service, a worker pool, and the options for a job that uses them."""

    jobs: subprocess.Popen[bytes]
    pool: subprocess.Popen[bytes]
    options: list[str]


@contextmanager
def portable_services(folder: Path) -> Iterator[PortableServices]:
    """A job service and an EXTERNAL worker pool, as docs/engines.md starts them."""
    jobs, pool = free_port(), free_port()
    service = ["-m", "apache_beam.runners.portability.local_job_service_main", "--port", str(jobs)]
    workers = ["-m", "apache_beam.runners.worker.worker_pool_main", "--service_port", str(pool)]
    with process(service, folder / "jobs.log") as first, process(workers, folder / "pool.log") as second:
        wait_for_port(jobs, first)
        wait_for_port(pool, second)
        yield PortableServices(first, second, [
            "--runner", "PortableRunner", "--job_endpoint", f"localhost:{jobs}", "--environment_type", "EXTERNAL",
            "--environment_config", f"localhost:{pool}"])


@contextmanager
def portable_runner(folder: Path) -> Iterator[list[str]]:
    """The same, for those who only need the options."""
    with portable_services(folder) as services:
        yield services.options


@contextmanager
def dask_cluster(folder: Path) -> Iterator[list[str]]:
    """A Dask scheduler and two workers with one thread each; yields the options for the job."""
    port = free_port()
    address = f"tcp://localhost:{port}"
    worker = ["-m", "dask", "worker", address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard",
              "--local-directory", str(folder)]
    with process(["-m", "dask", "scheduler", "--port", str(port), "--no-dashboard"], folder / "dask.log") as scheduler:
        wait_for_port(port, scheduler)
        with process(worker, folder / "dask-1.log"), process(worker, folder / "dask-2.log"):
            yield ["--runner", "DaskRunner", "--dask_client_address", address]
