"""A checkpoint without a layout: every parameter whole, in one safetensors file with its Adam moments.

A run continues from its checkpoints in any layout, so nobody must convert one. A universal checkpoint is for moving
and keeping: it fits every layout, holds no pickles, and any program that reads safetensors can read it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from safetensors.torch import save_file
from torch import Tensor

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.storage import hash_file, write_bytes, write_json
from train.config import TrainConfig
from train.parallel.layout import Layout
from train.saved import HIDDEN, PREFIX, Saved
from train.whole import MOMENTS, WEIGHT, open_whole, universal_file

SUFFIX = "_universal"


def convert(saved: Saved) -> Saved:
    """Write the universal form of a complete checkpoint beside it."""
    whole = open_whole(saved)

    def parameters() -> Iterator[tuple[str, dict[str, Tensor]]]:
        for name in saved.parameters:
            values = {key: whole.read(name, key) for key in (WEIGHT, *MOMENTS)} if steps else {
                WEIGHT: whole.read(name, WEIGHT)
            }  # fmt: skip
            yield name, {key: value for key, value in values.items() if value is not None}

    steps = whole.optimizer_steps
    return write_universal(saved, parameters(), steps)


def write_universal(like: Saved, parameters: Iterator[tuple[str, dict[str, Tensor]]], steps: float) -> Saved:
    """Commit a universal checkpoint with the facts of `like`, parameter by parameter; `steps` counts updates."""
    checkpoints = like.folder.parent
    saved = replace(
        like, folder=checkpoints / f"{PREFIX}{like.step:08d}{SUFFIX}", layout=None, shards=[],
        saved_at=round(time.time(), 3),
    )  # fmt: skip
    hidden = saved.folder.with_name(f"{HIDDEN}{saved.folder.name}")
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir(parents=True)
    files: dict[str, dict[str, Any]] = {}
    for name, values in parameters:
        path = hidden / universal_file(name)
        contents = {key: value.contiguous() for key, value in values.items()}
        save_file(contents, path, metadata={"format": "pt", "optimizer_steps": str(steps)})
        with path.open("rb") as handle:
            os.fsync(handle.fileno())
        files[path.name] = {"size": path.stat().st_size, "xxh3": hash_file(str(path))}
    write_json(str(hidden / "manifest.json"), saved.manifest(files))
    shutil.rmtree(saved.folder, ignore_errors=True)
    hidden.rename(saved.folder)
    write_bytes(str(checkpoints / "latest"), f"{saved.folder.name}\n".encode())
    return saved


def check_layout(saved: Saved, layout: Layout) -> None:
    """Raise RecipeError, naming sizes that would do, if the run of a checkpoint cannot be cut in this way."""
    settings = {key: value for key, value in saved.identity.items() if key in TrainConfig.model_fields}
    cut = {"tensor_parallel": layout.tensor, "pipeline_parallel": layout.pipeline, "micro_batch": 1}
    try:
        config = TrainConfig.model_validate({**settings, **cut})
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        raise RecipeError(str(context.get("error", error))) from error
    config.check_vocabulary(int(saved.shape["vocabulary"]))
    config.layout(layout.processes)
