"""What a checkpoint weighs, per parameter, and that this gives the published sizes of BLOOM-176B's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.train.scenario import VOCABULARY, settings, train
from train.background import read_tensors
from train.convert import convert
from train.model.shape import parameter_count
from train.saved import newest_complete

GIB, TB = 2**30, 10**12
BLOOM = 176_247_271_424


def tensor_bytes(value: Any) -> int:
    """Bytes of all tensors of a file but single numbers, of which there are a few a process."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size() if value.ndim else 0
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return sum(tensor_bytes(one) for one in inner)


@pytest.mark.parametrize(("precision", "weights"), [("bf16", 2), ("fp32", 4)])
def test_bytes_per_parameter(tmp_path: Path, precision: str, weights: int) -> None:
    config = settings(precision=precision, steps=2)
    train(config, tmp_path)
    saved = newest_complete(tmp_path / "checkpoints", print)
    assert saved is not None
    parameters = parameter_count(config.shape(VOCABULARY))
    by_kind = {
        kind: sum(tensor_bytes(read_tensors(path, lazily=False)) for path in saved.folder.glob(f"*{kind}_states.pt"))
        for kind in ("model", "optim")
    }
    # Master weights and two moments of four bytes each.
    assert by_kind == {"model": weights * parameters, "optim": 12 * parameters}
    whole = convert(saved)
    assert sum(tensor_bytes(load_file(path)) for path in whole.folder.glob("*.safetensors")) == 12 * parameters
    assert not list(tmp_path.rglob("*.py"))  # DeepSpeed would leave its programs


@pytest.mark.parametrize(
    ("each", "unit", "published"),
    [(14, GIB, 2298.0), (2, GIB, 328.3), (2, TB, 0.3525)],  # "2.3 TB" and "329 GB" count in units of 1024
)
def test_published_sizes_follow(each: int, unit: int, published: float) -> None:
    size = each * BLOOM / unit
    assert size == pytest.approx(published, rel=2e-4)
