"""Gopher against a plain one, its published sizes, and the published operations of its training."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from roots_pipeline.core.recipe import load_section
from tests.train import reference_gopher
from tests.train.scenario import VOCABULARY, settings
from train.config import RECIPES, TrainConfig
from train.engine import build_engine
from train.model.architecture import TIED, partition_dim, published_name
from train.model.shape import model_flops_per_token, parameter_count
from train.parallel.topology import connect

HEADS, LAYERS = 4, 3


@pytest.fixture(scope="module")
def model() -> Any:
    """Random everywhere: zero biases would hide mistakes."""
    config = settings(model={"kind": "gopher", "hidden": 32, "layers": LAYERS, "heads": HEADS, "init_std": 0.2})
    built = build_engine(config, VOCABULARY, connect(config.layout(1))).module.eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return built


def weights(model: Any) -> dict[str, Tensor]:
    found = {}
    for own, parameter in model.named_parameters():
        head, rest = own.split(".", 1)
        name = f"{TIED}.weight" if head == "tied_modules" else published_name(int(head), LAYERS, rest)
        assert partition_dim(name) == getattr(parameter, "partition_dim", None), name
        found[name] = parameter
    return found


@pytest.mark.parametrize("length", [1, 16, 32])
def test_logits_equal_the_plain_model_also_at_twice_the_training_length(model: Any, length: int) -> None:
    tokens = torch.randint(0, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = reference_gopher.logits(weights(model), HEADS, tokens)
        found = model(tokens) @ model.tied_modules[TIED].weight.T
    assert expected.std() > 0.5  # large enough to mean something
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)


def test_parameter_count_is_what_is_built(model: Any) -> None:
    assert parameter_count(model.shape) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("size", "published", "layers", "hidden", "heads", "rate", "batch_tokens", "clip"),
    [
        ("44m", 44e6, 8, 512, 16, 6e-4, 2**18, 1.0),
        ("117m", 117e6, 12, 768, 12, 6e-4, 2**18, 1.0),
        ("417m", 417e6, 12, 1536, 12, 2e-4, 2**18, 1.0),
        ("1b4", 1.4e9, 24, 2048, 16, 2e-4, 2**18, 1.0),
        ("7b1", 7.1e9, 32, 4096, 32, 1.2e-4, 2**21, 0.25),
        ("280b", 280e9, 80, 16384, 128, 4e-5, 6 * 2**20, 0.25),
    ],
)
def test_recipes_have_the_published_sizes_and_parameters(
    size: str, published: float, layers: int, hidden: int, heads: int, rate: float, batch_tokens: int, clip: float
) -> None:
    config = load_section(f"gopher-{size}", "train", TrainConfig, RECIPES)
    sizes = config.model
    assert (sizes.kind, sizes.layers, sizes.hidden, sizes.heads) == ("gopher", layers, hidden, heads)
    assert (config.lr, config.min_lr, config.clip) == (rate, pytest.approx(rate / 10), clip)
    assert config.global_batch * config.sequence_length == batch_tokens
    assert config.train_samples * config.sequence_length == 300_000_000_000
    schedule, batch = config.learning_rate(), config.batch_size()
    assert (schedule(0), schedule(1500 * batch(0)), schedule(config.train_samples)) == (
        1e-7, rate, pytest.approx(config.min_lr),
    )  # fmt: skip
    count = parameter_count(config.shape(32_000))
    assert count == pytest.approx(published, rel=0.02)
    # Matrices alone, with attention as wide as the model: W of the positions and a tied embedding are both needed.
    assert count == pytest.approx(layers * 13 * hidden**2 + 32_000 * hidden, rel=1e-3)
    assert config.layout(config.tensor_parallel * config.pipeline_parallel).data == 1
    config.check_vocabulary(32_000)


def test_operations_of_the_large_run_are_the_published_ones() -> None:
    """6.31e23 with the forward pass of rematerialisation and without the vocabulary (Gopher, table A27)."""
    shape = load_section("gopher-280b", "train", TrainConfig, RECIPES).shape(32_000)
    blocks = model_flops_per_token(shape, 2048) - 6 * shape.vocabulary * shape.hidden
    assert blocks * 4 / 3 * 300e9 == pytest.approx(6.31e23, rel=1e-3)


def test_model_needs_no_norm_after_the_embedding(model: Any) -> None:
    names = weights(model)
    assert not any("word_embeddings_layernorm" in name or name.endswith(".bias") for name in names)
