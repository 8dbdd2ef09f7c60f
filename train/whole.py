"""The state of a checkpoint parameter by parameter, whole, whatever layout it was saved in.

DeepSpeed's optimizer files hold, for each process, one flat piece of its parameters' float32 master weights and Adam
moments. Here the pieces of data-parallel processes are put behind one another, those of tensor-parallel processes side
by side, and a parameter is what it would be in one process. A universal checkpoint stores just that, one safetensors
file a parameter. Files are mapped, not loaded: only what is asked for is read.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from safetensors import safe_open
from torch import Tensor

from train.background import read_tensors
from train.saved import Saved

WEIGHT = "fp32"
MOMENTS = ("exp_avg", "exp_avg_sq")
_STATE, _WEIGHTS, _PLACES = "base_optimizer_state", "single_partition_of_fp32_groups", "param_slice_mappings"


class Whole(Protocol):
    """Whole parameters by the names they have in the pipeline, for example 2.mlp.dense_h_to_4h.weight."""

    def read(self, name: str, key: str) -> Tensor | None:
        """A float32 tensor of the whole shape; `key` is WEIGHT or one of MOMENTS, which a fresh optimizer lacks."""

    @property
    def optimizer_steps(self) -> float:
        """Updates that the moments have seen."""


def open_whole(saved: Saved) -> Whole:
    """The parameters of a complete checkpoint; its hashes must have been checked."""
    return Universal(saved) if saved.layout is None else Sharded(saved)


def universal_file(name: str) -> str:
    """File of one parameter in a universal checkpoint."""
    return f"{name}.safetensors"


class Universal:
    """One file a parameter; the number of updates is in its metadata."""

    def __init__(self, saved: Saved) -> None:
        self._saved = saved

    @property
    def optimizer_steps(self) -> float:
        with self._open(next(iter(self._saved.parameters))) as file:
            return float(file.metadata()["optimizer_steps"])

    def read(self, name: str, key: str) -> Tensor | None:
        with self._open(name) as file:
            return file.get_tensor(key) if key in set(file.keys()) else None

    def _open(self, name: str) -> Any:
        return safe_open(str(self._saved.folder / universal_file(name)), framework="pt")


class Sharded:
    """DeepSpeed's files of any layout."""

    def __init__(self, saved: Saved) -> None:
        assert saved.layout is not None
        self._saved, self._tensor = saved, saved.layout.tensor
        self._opened: dict[str, Any] = {}
        self._pieces: dict[str, list[list[tuple[str, int, Any]]]] = {}  # name -> tensor rank -> file, group, place
        stages: dict[str, int] = {}
        for shard in sorted(saved.shards, key=lambda one: (one["stage"], one["tensor"], one["data"])):
            for group, places in enumerate(self._optimizer(shard["file"])[_PLACES]):
                for name, place in places.items():
                    ranks = self._pieces.setdefault(name, [[] for _ in range(self._tensor)])
                    if stages.setdefault(name, shard["stage"]) == shard["stage"]:  # tied parameters are on two
                        ranks[shard["tensor"]].append((shard["file"], group, place))

    @property
    def optimizer_steps(self) -> float:
        return float(self._optimizer(self._saved.shards[0]["file"])[_STATE]["state"][0]["step"])

    def read(self, name: str, key: str) -> Tensor | None:
        described = self._saved.parameters[name]
        whole, dim = list(described["shape"]), described["cut"]
        own = [size // self._tensor if axis == dim else size for axis, size in enumerate(whole)]
        ranks = self._pieces[name][: 1 if dim is None else None]
        parts = [torch.cat([self._flat(piece, key) for piece in pieces]).view(own) for pieces in ranks]
        return parts[0] if dim is None else torch.cat(parts, dim)

    def _flat(self, piece: tuple[str, int, Any], key: str) -> Tensor:
        file, group, place = piece
        state = self._optimizer(file)
        values: Tensor = state[_WEIGHTS][group] if key == WEIGHT else state[_STATE]["state"][group][key]
        return values.narrow(0, place.start, place.numel)

    def _optimizer(self, file: str) -> Any:
        if file not in self._opened:
            self._opened[file] = read_tensors(self._saved.folder / file, lazily=True)["optimizer_state_dict"]
        return self._opened[file]
