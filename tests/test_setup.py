"""Set-up installs into this checkout's own environment only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SETUP = Path(__file__).resolve().parents[1] / ".ci" / "setup"


def test_the_environment_of_another_checkout_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "other" / ".venv"
    elsewhere.mkdir(parents=True)
    (elsewhere / ".ready").touch()
    (tmp_path / "here" / ".ci").mkdir(parents=True)
    shutil.copy(SETUP, tmp_path / "here" / ".ci" / "setup")
    (tmp_path / "here" / ".venv").symlink_to(elsewhere)
    done = subprocess.run(["bash", str(tmp_path / "here" / ".ci" / "setup")], capture_output=True, text=True,
                          env={**os.environ, "PYTHON": sys.executable}, check=False)
    assert done.returncode == 1 and ".venv is a link to another place" in done.stderr
    assert [path.name for path in elsewhere.iterdir()] == [".ready"]
