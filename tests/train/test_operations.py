"""What keeps a run alive: spikes, roll-backs, stops, hangs, restarts, full disks, slow processes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.parquet as pq
import pytest

from mixtures.dataset import BlendedDataset
from roots_pipeline.core.errors import StorageError, TrainingError
from roots_pipeline.core.progress import Progress
from tests.train import trouble
from tests.train.scenario import MadeUpText, make_trainer, numbers, settings, train
from tests.train.test_commands import prepare
from train import health
from train.incidents import documents_of
from train.model.shape import Shape, hardware_flops_per_token, model_flops_per_token
from train.monitor import Monitor
from train.saved import newest_first
from train.settings import SpikeConfig
from train.spikes import SpikeDetector
from train.stopping import StopRequests

LENGTH = 16


class Marked(MadeUpText):
    """Samples of which `bad` are one token over and over: five times the usual gradient."""

    def __init__(self, bad: range) -> None:
        super().__init__(LENGTH)
        self.bad = bad

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        return np.full(LENGTH + 1, 7) if index in self.bad else super().__getitem__(index)


def spiking(action: str, **more: Any) -> dict[str, Any]:
    spikes = {"action": action, "window": 8, "loss": 1e9, "gradient_norm": 3.0, **more}
    return {"steps": 14, "save_every": 3, "keep": 2, "validation_samples": 0, "operations": {"spikes": spikes}}


BAD = range(32, 36)  # step 9; the last save before it is that of step 6


def incident(folder: Path, step: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "incidents" / f"step_{step:08d}.json").read_text())
    return value


@pytest.mark.parametrize("margin", [0, 2])
def test_roll_back_passes_over_exactly_the_samples_of_the_spike(tmp_path: Path, margin: int) -> None:
    """The end is, digit for digit, that of a run whose recipe passes over them from the start."""
    config = settings(**spiking("rollback", margin_samples=margin))
    rolled = train(config, tmp_path / "rolled", source=Marked(BAD))
    skipped = [[BAD.start - margin, BAD.stop + margin]]
    calm = settings(**{**spiking("none"), "skip_samples": skipped})
    expected = train(calm, tmp_path / "calm", source=Marked(BAD))
    assert numbers(rolled) == numbers(expected) and len(rolled) == 13 - (margin > 0)
    noted = json.loads((tmp_path / "rolled" / "skipped.json").read_text())
    assert [[one["first"], one["end"]] for one in noted] == skipped and noted[0]["step"] == 9
    found = incident(tmp_path / "rolled", 9)
    assert (found["first_sample"], found["last_sample"]) == (32, 35) and "gradient norm" in found["reason"]


def test_run_that_was_rolled_back_and_stopped_continues(tmp_path: Path) -> None:
    config = settings(**spiking("rollback"))
    whole = train(config, tmp_path / "whole", source=Marked(BAD))
    train(config, tmp_path / "parts", source=Marked(BAD), stop_after=10)
    assert numbers(train(config, tmp_path / "parts", source=Marked(BAD))) == numbers(whole)


def test_too_many_roll_backs_end_the_run(tmp_path: Path) -> None:
    config = settings(**spiking("rollback", most_rollbacks=1))
    with pytest.raises(TrainingError, match="went back 1 times already"):
        train(config, tmp_path, source=Marked(range(32, 44)))


def test_warning_and_snapshot_change_no_number(tmp_path: Path) -> None:
    runs = {
        action: train(settings(**spiking(action)), tmp_path / action, source=Marked(BAD))
        for action in ("none", "warn", "snapshot")
    }
    steps = {action: [one for one in numbers(found) if len(one) > 2] for action, found in runs.items()}
    assert steps["none"] == steps["warn"] == steps["snapshot"]
    assert [one["step"] for one in runs["warn"] if "incident" in one] == [9]
    kept = [folder.name for folder in newest_first(tmp_path / "snapshot" / "checkpoints")]
    assert kept[-2:] == ["step_00000009", "step_00000006"]  # keep: 2 would have removed both
    assert (tmp_path / "snapshot" / "checkpoints" / "step_00000006" / "keep").exists()


def test_detector_on_the_published_spike() -> None:
    """BLOOM, April 2022: loss 2.2 to 5.1, gradient norm 960. Falling, noisy losses are no spikes."""
    random = np.random.default_rng(0)
    detector = SpikeDetector(SpikeConfig())
    for step in range(500):
        assert detector.judge(2.0 + 8 * math.exp(-step / 100) + random.normal(0, 0.02), random.uniform(0.2, 1)) is None
    assert "loss of 5.1" in str(detector.judge(5.1, 0.5))
    assert "norm of 960" in str(detector.judge(2.05, 960.0))
    assert "loss is nan" in str(detector.judge(math.nan, 1.0))
    assert detector.judge(2.05, 0.6) is None


def test_detector_resumes_with_what_it_knew(tmp_path: Path) -> None:
    random, log = np.random.default_rng(1), tmp_path / "log.jsonl"
    seen = [(1 + random.normal(0, 0.05), random.uniform(1, 2)) for _ in range(90)]
    lines: list[dict[str, Any]] = [
        {"step": n, "loss": loss, "gradient_norm": norm} for n, (loss, norm) in enumerate(seen)
    ]
    lines.insert(50, {"step": 49, "loss": None, "gradient_norm": None})  # overflowed in fp16
    log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in [*lines, {"step": 89, "validation": {}}]))
    one, other = (SpikeDetector(SpikeConfig(loss=1.0, window=20)) for _ in range(2))
    for loss, norm in seen[:60]:
        one.judge(loss, norm)
    other.reset(log, 59)
    assert [one.judge(*pair) for pair in seen[60:]] == [other.judge(*pair) for pair in seen[60:]]


def test_first_signal_saves_and_stops_after_the_step(tmp_path: Path) -> None:
    class Signals(MadeUpText):
        def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
            if index == 9:  # in step 3
                os.kill(os.getpid(), signal.SIGTERM)
            return super().__getitem__(index)

    config, before = settings(), signal.getsignal(signal.SIGTERM)
    records = train(config, tmp_path, source=Signals(LENGTH), watched=True)
    assert records[-1]["step"] == 3 and signal.getsignal(signal.SIGTERM) is before
    assert next(newest_first(tmp_path / "checkpoints")).name == "step_00000003"
    assert numbers(train(config, tmp_path)) == numbers(train(config, tmp_path / "whole"))


def test_kill_switch_and_time_limit(tmp_path: Path) -> None:
    trainer = make_trainer(settings(), tmp_path, watched=True)
    assert trainer.stops is not None and trainer.watchdog is not None
    (tmp_path / "STOP").touch()
    assert trainer.run() == (1, 4)
    trainer.stops.close()
    trainer.watchdog.stop()
    soon = StopRequests(tmp_path / "absent", exit_minutes=0.0)
    assert "the 0 minutes of this call are over" in str(soon.reason(leads=True)) and soon.reason(leads=False) is None
    assert StopRequests(tmp_path / "absent", exit_minutes=60.0).reason(leads=True) is None


def test_a_killed_process_is_started_again_and_a_hang_is_ended(tmp_path: Path, project: Path) -> None:
    """Two processes, one killed in the first life and stopped in the second; then one process goes on to the end."""
    start = "import sys; from train.launch import run_workers; sys.exit(run_workers(2, sys.argv[1:], restarts=1))"
    command = [sys.executable, "-c", start, "tests.train.trouble", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1 and "ended itself because nothing moved on" in done.stderr, done.stderr[-4000:]
    assert "seconds without progress, in step 7. The job ends" in done.stderr
    # Both processes' stacks: of the one that waits, and of the stopped one, woken for it.
    waiting, stopped = ((tmp_path / "run" / "stacks" / f"process_{rank:05d}.txt").read_text() for rank in (0, 1))
    assert "train_batch" in waiting and "in _watch" in waiting
    assert 'trouble.py", line' in stopped and "in __getitem__" in stopped
    config = settings(**trouble.CHANGES)
    steps = [orjson.loads(line)["step"] for line in (tmp_path / "run" / "log.jsonl").read_bytes().splitlines()]
    assert steps[:6] == [1, 2, 3, 4, 5, 6]  # and perhaps more, once the stopped one had been woken
    log, calm = numbers(train(config, tmp_path / "run")), numbers(train(config, tmp_path / "calm"))
    assert len(log) == 8
    for mine, alone in zip(log, calm, strict=True):
        assert mine == pytest.approx(alone, rel=1e-5, abs=1e-5)


def test_documents_of_a_sample_are_those_that_decode_to_it(tmp_path: Path) -> None:
    prepare(tmp_path)
    source = BlendedDataset(str(tmp_path / "mixture" / "mixture.lock.yaml"), "train", 20, sequence_length=LENGTH)
    ids = {one for path in (tmp_path / "corpus").rglob("*.parquet") for one in pq.read_table(path)["id"].to_pylist()}
    found = documents_of(source, [3, 5])
    assert {one["sample"] for one in found} == {3, 5} and {one["id"] for one in found} <= ids
    for sample in (3, 5):
        assert sum(one["tokens"] for one in found if one["sample"] == sample) == LENGTH + 1
    assert documents_of(MadeUpText(LENGTH), [3]) == []


def test_a_loss_that_is_no_number_names_the_documents_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss of step 2 of a run on a real mixture breaks: the incident holds what samples 4 to 7 were read from."""
    prepare(tmp_path)
    source = BlendedDataset(str(tmp_path / "mixture" / "mixture.lock.yaml"), "train", 32, sequence_length=LENGTH)
    trainer = make_trainer(settings(validation_samples=0), tmp_path / "model", source=source, vocabulary=512)
    module, losses = trainer.engine.module, 0
    right = module.loss_fn

    def broken(*arguments: Any) -> Any:
        nonlocal losses
        losses += 1
        return right(*arguments) * (math.nan if losses == 4 else 1.0)  # two micro-batches a step

    monkeypatch.setattr(module, "loss_fn", broken)
    with pytest.raises(TrainingError, match=r"became nan.* in step 2, which read samples 4 to 7 of ") as error:
        trainer.run()
    found = incident(tmp_path / "model", 2)
    assert (found["first_sample"], found["last_sample"]) == (4, 7) and "nan" in found["reason"]
    assert found["documents"] == documents_of(source, range(4, 8)) and found["documents"]
    assert f"{found['documents'][0]['group']}:{found['documents'][0]['id']}" in str(error.value)


def test_a_full_disk_is_noticed_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=100)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(StorageError, match="a checkpoint takes"):
        health.check_space(tmp_path, 101)
    health.check_space(tmp_path, 100)
    assert health.space_warning(tmp_path, 50) is None and "are free" in str(health.space_warning(tmp_path, 51))
    trainer = make_trainer(settings(steps=2), tmp_path)
    trainer.checkpoints.needed_bytes = 101
    with pytest.raises(StorageError, match="nothing was written"):
        trainer.run()
    assert not list((tmp_path / "checkpoints").iterdir())


def test_slow_processes_by_hand() -> None:
    assert health.slow_ones([1.0, 1.02, 1.3, 0.99], 1.1) == {2: pytest.approx(1.3 / 1.01)}
    assert health.slow_ones([1.0], 1.1) == {}


def test_operations_per_step_are_the_published_formula(shared: Path) -> None:
    """All rows of the golden file: with and without recomputation (gated units are no part of these models)."""
    rows = json.loads((shared / "golden" / "megatron" / "07_flops_params.json").read_text())["tflops"]
    checked = 0
    for row in rows:
        if row["glu"]:
            continue
        shape = Shape(row["hidden"], row["layers"], 1, row["padded_vocab"])
        per_token = hardware_flops_per_token(shape, row["seq"], recomputed=row["checkpoint_activations"])
        flops = per_token * row["seq"] * row["global_batch"]
        assert flops == pytest.approx(row["flops_per_iteration"], rel=1e-12)
        tflops = flops / row["seconds"] / row["world_size"] / 1e12
        assert tflops == pytest.approx(row["tflops"], rel=1e-12) and f"{tflops:.2f}" == row["logged"]
        if row["name"] == "176B logged":  # 36.0% of an A100's 312 TFLOP/s is the model's own work
            own = model_flops_per_token(shape, row["seq"]) * row["seq"] * row["global_batch"]
            assert own / row["seconds"] / row["world_size"] / 312e12 == pytest.approx(0.360, abs=0.0005)
        checked += 1
    assert checked >= 17


def test_numbers_go_to_weights_and_biases_only_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[int, dict[str, float]]] = []
    asked: dict[str, Any] = {}

    def init(**more: Any) -> Any:
        asked.update(more)
        return SimpleNamespace(log=lambda values, step: logged.append((step, values)))

    silent = Progress(quiet=True, stream=StringIO())
    more: dict[str, Any] = {"log_every": 1, "peak": 1e12, "flops_per_token": 1.0}
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(TrainingError, match="pip install wandb"):
        Monitor(tmp_path, silent, wandb="bloom", **more)
    Monitor(tmp_path, silent, **more)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    monitor = Monitor(
        tmp_path, silent, wandb="bloom", hardware_flops_per_token=4.0, processes=2, device_peak=100.0, **more
    )
    facts = {"loss": 1.0, "gradient_norm": 1.0, "learning_rate": 1.0, "global_batch": 4.0}
    monitor.step(1, 4, 64, 2.0, 8, **facts)
    assert asked["project"] == "bloom" and asked["resume"] == "allow" and logged[0][0] == 1
    assert logged[0][1]["mfu"] == pytest.approx(64 / 2 / 2 / 100) and logged[0][1]["hfu"] == pytest.approx(0.64)
