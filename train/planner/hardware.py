"""Descriptions of processors and their links: `train/hardware.yaml`, or a file of the same form."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import Field, PositiveFloat, PositiveInt, ValidationError

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.yaml_hints import parse_yaml
from train.settings import Strict

BUILT_IN = Path(__file__).parents[1] / "hardware.yaml"


class Node(Strict):
    """A machine: GPUs, bandwidth of one GPU to its neighbours and of the whole node to others, one way, GB/s."""

    gpus: PositiveInt
    link_gbytes: PositiveFloat
    network_gbytes: PositiveFloat


class Hardware(Strict):
    """One kind of GPU; `tflops` are dense peaks by precision."""

    memory_gib: PositiveFloat
    tflops: dict[str, float]
    efficiency: float = Field(gt=0.0, le=1.0)
    watts: PositiveFloat
    node: Node

    def peak(self, precision: str) -> float:
        """FLOP/s; raises RecipeError if this GPU has no such precision."""
        name = "bf16" if precision == "bf16-stochastic" else precision
        if name not in self.tflops:
            hint = f"It knows {', '.join(sorted(self.tflops))}."
            raise RecipeError(f"this GPU does not compute in {name}.", where="--gpu", hint=hint)
        return self.tflops[name] * 1e12


def load_hardware(name: str, file: Path = BUILT_IN) -> Hardware:
    """The GPU called `name`; raises RecipeError for an unknown one or a file that is none."""
    try:
        known = parse_yaml(file.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise RecipeError(f"it cannot be read as YAML ({error}).", where=str(file)) from error
    if not isinstance(known, dict):
        raise RecipeError("this file describes no GPUs.", where=str(file), hint="Write it like train/hardware.yaml.")
    if name not in known:
        hint = nearest(name, [str(one) for one in known])
        raise RecipeError(f"there is no GPU '{name}'.", where=str(file), hint=hint)
    try:
        return Hardware.model_validate(known[name])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RecipeError(f"{name}.{place}: {first['msg']}.", where=str(file)) from error
