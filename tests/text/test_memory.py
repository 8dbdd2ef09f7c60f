"""Compiled kernels follow their sources, and those of the kernels inside them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

INNER = "from roots_pipeline.text.memory import inlined\n\n\n@inlined\ndef inner(x):\n    return x + {number}\n"
OUTER = """
from inner import inner
from roots_pipeline.text.memory import kernel

@kernel
def outer(x):
    return inner(x)

print(outer(0), sum(outer.stats.cache_hits.values()))
"""


def run(folder: Path, project: Path) -> list[str]:
    """Result of the outer kernel and number of times its code came from the cache, in a process of its own."""
    settings = {"PYTHONPATH": f"{folder}:{project}", "PATH": ""}
    command = [sys.executable, "-c", "import outer"]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_changed_kernel_is_compiled_again_wherever_it_was_put_in_place(tmp_path: Path, project: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(number=1))
    assert run(tmp_path, project) == ["1", "0"]
    assert run(tmp_path, project) == ["1", "1"]
    (tmp_path / "inner.py").write_text(INNER.format(number=20))
    assert run(tmp_path, project) == ["20", "0"]
