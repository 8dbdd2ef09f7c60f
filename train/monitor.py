"""What a run reports: one JSON line a step in `log.jsonl`, the same numbers for TensorBoard, sentences for people.

Speed is given in tokens a second and as the share of what the processor can do, against a large matrix
multiplication measured at the start: a number near the machine's limit cannot be improved by better code.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import torch
import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter

from roots_pipeline.core.errors import TrainingError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import fingerprint, write_bytes
from train.validation import BLEND, Counted


def matmul_peak(device: torch.device, precision: str = "fp32", seconds: float = 1.0) -> float:
    """Best FLOP/s of a large matrix multiplication, added over all processes working at the same time.

    Measured in the precision of the run on a GPU, and always in float32 on a CPU.
    """
    size = 8192 if device.type == "cuda" else 1024
    kind = torch.bfloat16 if device.type == "cuda" and precision == "bf16" else torch.float32
    left, right = (torch.rand(size, size, device=device, dtype=kind) for _ in range(2))
    dist.barrier()
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        torch.mm(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = max(best, 2.0 * size**3 / (time.perf_counter() - started))
    total = torch.tensor(best, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return float(total)


class Monitor:
    """Writes the log of one run; only the leading process has one."""

    def __init__(
        self,
        folder: Path,
        progress: Progress,
        *,
        log_every: int,
        peak: float,
        flops_per_token: float,
        hardware_flops_per_token: float | None = None,
        processes: int = 1,
        device_peak: float | None = None,
        wandb: str | None = None,
    ) -> None:
        """`peak` is the measured FLOP/s of all processes, `device_peak` what a data sheet says of one of them; with
        `hardware_flops_per_token` recomputation is counted too. `wandb` is a project of Weights & Biases."""
        self.folder, self._progress, self._log_every = folder, progress, log_every
        self._peak, self._flops_per_token = peak, flops_per_token
        self._hardware, self._processes, self._device_peak = hardware_flops_per_token, processes, device_peak
        self.log, self._board = folder / "log.jsonl", folder / "tensorboard"
        self._writer: SummaryWriter | None = None
        self._elsewhere = None if wandb is None else _weights_and_biases(wandb, folder)

    def start(self, step: int) -> None:
        """Begin after `step`: lines of steps that a crash undid are dropped, so each step appears once."""
        kept = b""
        if self.log.exists():
            # A line cut short by a crash is dropped too.
            lines = [line for line in self.log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
            kept = b"".join(line for line in lines if step > 0 and orjson.loads(line)["step"] <= step)
        self.close()
        write_bytes(str(self.log), kept)
        self._writer = SummaryWriter(str(self._board), purge_step=step + 1)

    def step(self, step: int, samples: int, tokens: int, seconds: float, total_steps: int, **facts: float) -> None:
        """One optimizer step of `tokens` tokens; `facts` are loss, gradient norm, learning rate, ..."""
        flops = self._flops_per_token * tokens / seconds
        values = {
            **facts,
            "tokens_per_second": tokens / seconds,
            "model_tflops": flops / 1e12,
            "share_of_matmul_peak": flops / self._peak,
        }
        if self._hardware is not None:
            hardware = self._hardware * tokens / seconds / self._processes
            values["hardware_tflops_per_process"] = hardware / 1e12
            if self._device_peak is not None:
                values["mfu"] = flops / self._processes / self._device_peak
                values["hfu"] = hardware / self._device_peak
        self._write(step, samples, values)
        if step % self._log_every == 0 or step == total_steps:
            text = (
                f"step {step}/{total_steps}  loss {facts['loss']:.4f}  lr {facts['learning_rate']:.3g}  "
                f"gradient norm {facts['gradient_norm']:.3f}  {tokens / seconds:,.0f} tokens/s  "
                f"{100 * flops / self._peak:.0f}% of the matmul peak"
            )
            self._progress.say(text, step=step, **values)

    def validation(self, step: int, samples: int, found: Mapping[str, tuple[float, Counted]]) -> None:
        """The losses of the validation sets, the blend first, beside what the best predictor without context has."""
        sets = {
            name: {"loss": loss, "bits_per_byte": counted.bits_per_byte(loss), "unigram_entropy": counted.entropy}
            for name, (loss, counted) in found.items()
        }
        blend = sets[BLEND]
        shown = {"validation_loss": blend["loss"], "unigram_entropy": blend["unigram_entropy"]}
        self._write(step, samples, {**shown, "validation": sets})
        for name, values in sets.items():
            self._draw(step, {f"validation/{name}/{key}": value for key, value in values.items()})
        groups = [values["bits_per_byte"] for name, values in sets.items() if name != BLEND]
        more = f", {len(groups)} groups {min(groups):.3f} to {max(groups):.3f}" if groups else ""
        self._progress.say(
            f"step {step}  validation loss {blend['loss']:.4f}  (entropy of these tokens without context "
            f"{blend['unigram_entropy']:.4f}; bits per byte {blend['bits_per_byte']:.3f}{more})",
            step=step,
            **shown,
            bits_per_byte=blend["bits_per_byte"],
        )

    def incident(self, step: int, samples: int, reason: str) -> None:
        """A step that went wrong, in the log and for people."""
        self._write(step, samples, {"incident": reason})
        self._progress.say(f"step {step}  {reason}", step=step)

    def say(self, text: str, **facts: Any) -> None:
        """A sentence that is no measurement."""
        self._progress.say(text, **facts)

    def close(self) -> None:
        """Flush what TensorBoard has not written yet."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, step: int, samples: int, values: Mapping[str, Any]) -> None:
        with self.log.open("ab") as log:
            log.write(orjson.dumps({"step": step, "samples": samples, **values}) + b"\n")
        self._draw(step, {name: value for name, value in values.items() if isinstance(value, (int, float))})

    def _draw(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)
        if self._elsewhere is not None:
            self._elsewhere.log(dict(values), step=step)


def _weights_and_biases(project: str, folder: Path) -> Any:
    """A run there that continues with this one; the package is imported only here."""
    try:
        module = importlib.import_module("wandb")
    except ImportError as error:
        raise TrainingError(
            "train.operations.wandb is set, but the package wandb is not installed.",
            hint="Install it (pip install wandb), or leave the setting out: log.jsonl and tensorboard/ hold the same.",
        ) from error
    name = fingerprint(str(folder.resolve()))[:16]
    return module.init(project=project, dir=str(folder), id=name, name=folder.parent.name, resume="allow")
