"""An exported model in one process, without DeepSpeed's engine: for generating, and for comparing numbers."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from roots_pipeline.core.errors import TrainingError
from roots_pipeline.core.storage import read_json
from train.model.architecture import model_layers, published_name
from train.model.layers import Execution
from train.model.randomness import Randomness
from train.model.shape import Shape
from train.parallel.tensor import TensorParallel


class Standalone(nn.Module):
    """All layers of a model; the head is the embedding again."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        specs = model_layers(shape, Execution(TensorParallel(), Randomness(shape.seed)))
        self.shape = shape
        self.layers = nn.ModuleList(spec.build() for spec in specs[:-1])

    def forward(self, tokens: Tensor) -> Tensor:
        """Token ids [batch, length] to logits [batch, length, vocabulary]."""
        hidden = tokens
        for layer in self.layers:
            hidden = layer(hidden)
        embedding = self.layers[0].weight
        return hidden @ embedding.T  # type: ignore[operator]

    def published(self) -> dict[str, Tensor]:
        """The parameters by their published names."""
        return {
            f"transformer.{published_name(position, self.shape.layers, own)}": parameter
            for position, layer in enumerate(self.layers)
            for own, parameter in layer.named_parameters()
        }


def load_standalone(folder: Path) -> Standalone:
    """A Gopher from the files of `python -m train export`, in evaluation mode and float32.

    Raises TrainingError if they do not fit together.
    """
    config = read_json(str(folder / "config.json"))
    shape = Shape(**{field.name: config[field.name] for field in fields(Shape)})
    model, found = Standalone(shape).eval(), published_files(folder)
    for name, parameter in model.published().items():
        if name not in found:
            raise TrainingError(f"{name} is missing.", where=str(folder), hint="Export the model again.")
        with torch.no_grad():
            parameter.copy_(read_parameter(folder / found[name], name))
    return model


def published_files(folder: Path) -> dict[str, str]:
    """File of each parameter of a Hugging Face folder, by the parameter's name as stored.

    Raises TrainingError if there are no safetensors.
    """
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.is_file():
        return {str(name): str(file) for name, file in read_json(str(index))["weight_map"].items()}
    if single.is_file():
        with safe_open(str(single), framework="pt") as file:
            return dict.fromkeys(file.keys(), single.name)
    raise TrainingError(
        "there is no model.safetensors here.",
        where=str(folder),
        hint="Pickled weights (.bin) are not read; save the model with transformers' save_pretrained first.",
    )


def read_parameter(path: Path, name: str) -> Tensor:
    """One tensor of a safetensors file."""
    with safe_open(str(path), framework="pt") as file:
        tensor: Tensor = file.get_tensor(name)
        return tensor


