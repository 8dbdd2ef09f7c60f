"""Two kills of `tests.train.kills`; the full table takes minutes (see docs/training.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_killed_runs_end_with_the_digits_of_a_calm_one(tmp_path: Path, project: Path) -> None:
    command = [sys.executable, "-m", "tests.train.kills", "--kills", "2", "--seed", "3", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert sum(int(line.split()[0]) for line in done.stdout.splitlines() if ": process" in line) == 2
    assert done.stdout.endswith("0 differences\n")
