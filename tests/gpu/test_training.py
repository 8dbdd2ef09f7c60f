"""Small runs on a GPU, from the first step to a checkpoint and on from there, beside the same runs on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("deepspeed", reason="DeepSpeed is not installed: no training run was made")

from tests.train.scenario import numbers, settings, train

_MODEL = {"hidden": 64, "layers": 2, "heads": 4, "init_std": 0.05}


def run(folder: Path, precision: str, kind: str, **more: Any) -> list[tuple[float, ...]]:
    config = settings(model={**_MODEL, "kind": kind}, precision=precision, steps=8, sequence_length=32, save_every=4)
    return numbers(train(config, folder, **more))


@pytest.mark.parametrize("kind", ["bloom", "gopher"])
@pytest.mark.parametrize(("precision", "bound"), [("fp32", 2e-4), ("bf16", 3e-2), ("fp16", 1e-2)])
def test_a_run_learns_as_on_the_cpu_and_continues_from_its_checkpoint(
    kind: str, precision: str, bound: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tmp_path / "whole", precision, kind)
    run(tmp_path / "parts", precision, kind, stop_after=4)
    continued = run(tmp_path / "parts", precision, kind)
    assert len(whole) == len(continued)
    for mine, theirs in zip(continued, whole, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6)
    losses = [record[2] for record in whole if len(record) > 3]
    assert losses[-1] < losses[0] and all(torch.isfinite(torch.tensor(losses)))
    reference = cpu_losses(kind)
    assert losses == pytest.approx(reference, rel=bound)


def cpu_losses(kind: str) -> list[float]:
    """The same run in float32 on the CPU, in a process that sees no GPU."""
    import json
    import os
    import subprocess
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        code = (
            "import json, sys; from pathlib import Path; from tests.gpu import test_training as t; "
            f"print(json.dumps(t.run(Path({folder!r}), 'fp32', {kind!r})))"
        )
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "2"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    records = json.loads(done.stdout.strip().splitlines()[-1])
    return [record[2] for record in records if len(record) > 3]
