"""What `make` would run, run with the Python of the tests: the Makefile itself is under test, set-up excepted."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path


def planned(project: Path, *arguments: str) -> list[list[str]]:
    """The commands of `make ARGUMENTS`, without running them."""
    command = ["make", "--no-print-directory", "-n", "-o", ".venv/.ready", *arguments]
    listed = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert listed.returncode == 0, f"{shlex.join(command)}: {listed.stderr}"
    return [shlex.split(line) for line in listed.stdout.splitlines()]


def run_make(project: Path, folder: Path, *arguments: str) -> str:
    """Run `make ARGUMENTS` in a folder of its own; returns what it printed. Fails with the output of what failed."""
    environment = {**os.environ, "PYTHONPATH": str(project), "OMP_NUM_THREADS": "2"}
    printed = []
    for command in planned(project, *arguments):
        command[0] = sys.executable if command[0].endswith("/python") else command[0]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        printed.append(done.stdout)
    return "\n".join(printed)
