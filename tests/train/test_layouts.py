"""Runs in several layouts have the losses and norms of one process: BLOOM and Gopher, dropout on, clipping active."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.train.layouts import SHORT, VARIANTS, differences

Runs = dict[str, dict[str, Any]]
CASES = [
    f"{model} {layout} {variant}" for model in ("bloom", "gopher") for layout in SHORT for variant in SHORT[layout]
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Runs:
    """The short selection of `tests.train.layouts`."""
    folder = tmp_path_factory.mktemp("layouts")
    command = [sys.executable, "-m", "tests.train.layouts", "--short", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in (0, 1) and not done.stderr, done.stderr[-4000:]
    found: Runs = orjson.loads((folder / "layouts.json").read_bytes())
    return found


@pytest.mark.parametrize("case", CASES)
def test_losses_and_norms_are_those_of_one_process(runs: Runs, case: str) -> None:
    model, _, variant = case.split()
    bounds = VARIANTS[variant]
    loss, norm = differences(runs[case], runs[f"{model} 1x1x1 {bounds.beside}"])
    assert loss <= bounds.loss and norm <= bounds.norm


@pytest.mark.parametrize("case", CASES)
def test_copies_of_a_parameter_stay_equal_bit_for_bit(runs: Runs, case: str) -> None:
    assert runs[case]["drifted"] == []


@pytest.mark.parametrize("model", ["bloom", "gopher"])
def test_the_runs_prove_something(runs: Runs, model: str) -> None:
    """Each step was clipped, and the losses moved."""
    alone = runs[f"{model} 1x1x1 plain"]["steps"]
    assert min(norm for _, norm in alone) > 0.5
    assert max(loss for loss, _ in alone) - min(loss for loss, _ in alone) > 0.02
