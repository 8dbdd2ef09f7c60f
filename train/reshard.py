"""Continue in another layout: each process takes its own part of every whole parameter.

A part is cut twice: along the axis that tensor-parallel processes share, then the flat rest among data-parallel
processes (ZeRO-1). DeepSpeed remembers for every parameter which piece of it this process keeps in float32.
"""

from __future__ import annotations

from typing import Any

import torch

from roots_pipeline.core.errors import TrainingError
from train.parallel.topology import Place
from train.saved import Saved
from train.whole import MOMENTS, WEIGHT, Whole, open_whole


def describe_parameters(model: torch.nn.Module, place: Place) -> dict[str, dict[str, Any]]:
    """Whole shape and cut axis of this process's parameters, as a checkpoint's manifest holds them."""
    return {
        name: {"shape": _whole_shape(parameter, place.layout.tensor), "cut": getattr(parameter, "partition_dim", None)}
        for name, parameter in model.named_parameters()
    }


def _whole_shape(parameter: torch.Tensor, tensor: int) -> list[int]:
    dim = getattr(parameter, "partition_dim", None)
    return [size * tensor if axis == dim else size for axis, size in enumerate(parameter.shape)]


@torch.no_grad()
def load_into(engine: Any, place: Place, saved: Saved) -> None:
    """Fill weights and optimizer of an engine that has not trained yet.

    Raises TrainingError if the checkpoint holds other parameters than the model.
    """
    whole, optimizer = open_whole(saved), engine.optimizer
    for name, described in describe_parameters(engine.module, place).items():
        if (found := saved.parameters.get(name)) != described:
            raise TrainingError(
                f"the checkpoint has {name} as {found}, this model as {described}.",
                where=str(saved.folder),
                hint="The model of the recipe must be that of the checkpoint.",
            )
    for name, parameter in engine.module.named_parameters():
        if parameter._hp_mapping is not None:  # none of it is kept here
            _fill(parameter._hp_mapping.hp_fragment, name, WEIGHT, whole, parameter, place)
    steps = whole.optimizer_steps
    if steps:
        _fill_moments(optimizer, engine.module, whole, steps, place)
    optimizer.update_lp_params()
    engine.global_steps = saved.step


def _fill_moments(optimizer: Any, model: torch.nn.Module, whole: Whole, steps: float, place: Place) -> None:
    inner = optimizer.optimizer
    for group in inner.param_groups:
        flat = group["params"][0]
        state = inner.state[flat]
        state["step"] = torch.tensor(steps, dtype=torch.float32, device=flat.device)
        for key in MOMENTS:
            state[key] = torch.zeros_like(flat)
    for name, parameter in model.named_parameters():
        mapping = parameter._hp_mapping  # type: ignore[attr-defined]
        if mapping is None:
            continue
        flat, address = inner.param_groups[mapping.param_group_index]["params"][0], mapping.hp_fragment_address
        for key in MOMENTS:
            fragment = inner.state[flat][key].narrow(0, address.start, address.numel)
            _fill(fragment, name, key, whole, parameter, place)


def _fill(
    fragment: torch.Tensor, name: str, key: str, whole: Whole, parameter: torch.Tensor, place: Place
) -> None:
    values = whole.read(name, key)
    if values is None:
        raise TrainingError(f"the checkpoint has no {key} of {name}.")
    dim = getattr(parameter, "partition_dim", None)
    if dim is not None:
        first, count = place.tensor.share(values.shape[dim])
        values = values.narrow(dim, first, count)
    address = parameter._hp_mapping.lp_fragment_address  # type: ignore[attr-defined]
    fragment.copy_(values.reshape(-1).narrow(0, address.start, address.numel))
