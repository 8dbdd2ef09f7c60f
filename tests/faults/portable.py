"""Kills on Beam's PortableRunner: `python -m tests.faults --engine portable --faults 40`.

Each injection starts a job service, a worker pool and the command anew, on the folder that the one before has left. It
kills one of them, or the worker that the pool has started, at a random moment after that was started. The command may
then end well (a pool can be lost behind its worker), with a sentence, or by the kill that hit it. Whenever it ends
well, and after the last injection, the files are compared with those of a run by the local engine, and the folder
begins anew. A worker that is killed makes Beam wait for ever: that ends after `--stall_minutes`, here as long as an
undisturbed run takes, and 12 s at least. What has not ended in 300 s hangs.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.engines.clusters import PortableServices, portable_services
from tests.faults.runs import HANGS_AFTER, Ended, Run, write_small_input

KILLED = ("worker", "pool", "job service", "driver")
_LEAST_STALL = 12.0
_HEAD = "| | killed | after s | s | exit code | said | afterwards |\n|--:|---|--:|--:|--:|---|---|"


class PortableStorm:
    """All injections into one recipe; `differences`, `hangs`, `temporary` (files left over) and `unexplained` count."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self._folder, self._dice = folder, dice
        self._recipe = write_small_input(folder / "recipe", files=3, documents=40)
        calm = Run("corpus", self._recipe, folder / "calm", ["--workers", "1"])
        calm.undisturbed()
        self._wanted = calm.hashes()
        self.rows: list[str] = []
        self.differences = self.hangs = self.temporary = self.unexplained = 0
        self._seconds, self._work = self.finish()

    def _run(self, services: PortableServices, stall: float = HANGS_AFTER) -> Run:
        more = ["--engine", "beam", "--", *services.options, "--stall_minutes", str(stall / 60)]
        return Run("corpus", self._recipe, self._folder / "stormy", more)

    def finish(self) -> tuple[float, float]:
        """Run to the end without disturbance and compare; its seconds, and those since its worker was started."""
        with portable_services(self._folder) as services:
            run, began = self._run(services), time.monotonic()
            driver = run.start()
            _wait_for_worker(services, driver)
            worked = time.monotonic()
            ended = run.end(driver)
            now = time.monotonic()
        if ended.code != 0:
            self.unexplained += 1
            print(ended.printed, flush=True)
        self._compare(run)
        return now - began, now - worked

    def _compare(self, run: Run) -> str:
        found = run.hashes()
        left = [name for name in found if name.endswith(".tmp")]
        wrong = sorted(name for name in found.keys() | self._wanted.keys() if found.get(name) != self._wanted.get(name))
        self.temporary += len(left)
        self.differences += len(wrong)
        shutil.rmtree(run.folder)
        return f"{len(wrong)} files differ: {wrong[:3]}" if wrong else "same bytes"

    def inject(self, kind: str) -> None:
        """One kill, and a comparison if the run ended well in spite of it."""
        began = time.monotonic()
        with portable_services(self._folder) as services:
            run, started = self._run(services, max(_LEAST_STALL, self._seconds)), time.monotonic()
            driver = run.start()
            self._strike(kind, services, driver)
            after = time.monotonic() - started
            ended = run.end(driver)
        self._judge(kind, ended)
        outcome = self._compare(run) if ended.code == 0 else "goes on"
        code = "hang" if ended.code is None else ended.code
        self.rows.append(f"| {len(self.rows) + 1} | {kind} | {after:.1f} | {time.monotonic() - began:.1f} | {code} | "
                         f"{_said(ended)} | {outcome} |")
        print(self.rows[-1], flush=True)

    def _strike(self, kind: str, services: PortableServices, driver: subprocess.Popen[bytes]) -> None:
        _wait_for_worker(services, driver)
        with suppress(subprocess.TimeoutExpired):
            driver.wait(self._dice.uniform(0, self._work))
        if kind == "worker":
            victims = [child.pid for child in psutil.Process(services.pool.pid).children(recursive=True)]
        else:
            victims = [{"pool": services.pool, "job service": services.jobs, "driver": driver}[kind].pid]
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

    def _judge(self, kind: str, ended: Ended) -> None:
        fine = ended.code == 0 or (ended.code == -9 if kind == "driver" else ended.code == 2 and bool(_said(ended)))
        self.hangs += ended.code is None
        if not fine:
            self.unexplained += 1
            print(ended.printed, flush=True)

    def table(self) -> str:
        """All injections as a Markdown table."""
        return "\n".join([_HEAD, *self.rows]) + "\n"


def _wait_for_worker(services: PortableServices, driver: subprocess.Popen[bytes]) -> None:
    while driver.poll() is None and not psutil.Process(services.pool.pid).children():
        time.sleep(0.05)


def _said(ended: Ended) -> str:
    lines = [line for line in ended.printed.splitlines() if line.startswith("error:")]
    return " ".join(word for word in (lines or [""])[-1].split() if "/" not in word).replace("|", "/")[:90]


def portable_storm(faults: int, seed: int, minutes: float, log: Path | None) -> int:
    """So many injections, kinds by turns, none begun after so many minutes; the exit code."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = PortableStorm(Path(folder), random.Random(seed))
        for number in range(faults):
            if time.monotonic() - began < 60 * minutes:
                found.inject(KILLED[number % len(KILLED)])
        found.finish()
    print(f"{len(found.rows)} kills, {found.hangs} hangs, {found.differences} differences, {found.temporary} temporary "
          f"files left, {found.unexplained} unexplained ends")
    if log:
        log.write_text(found.table())
    return int(any([found.hangs, found.differences, found.temporary, found.unexplained]))
