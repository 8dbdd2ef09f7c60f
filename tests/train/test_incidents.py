"""What went wrong in BLOOM's training, each with a test that would have caught it (others are where their subject is).

Decayed LayerNorm of the embedding: test_optimizer. Copies that drift apart, tied gradients and clipping: test_layouts.
Restarts: test_training, test_parallel. Counting recomputation as work: test_model.
"""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from roots_pipeline.core.recipe import load_section
from tests.train.scenario import VOCABULARY, MadeUpText, settings
from train.config import RECIPES, TrainConfig
from train.data import micro_batches
from train.engine import build_engine
from train.model.architecture import model_layers
from train.model.attention import AlibiAttention, alibi_slopes
from train.model.layers import Execution
from train.model.randomness import Randomness
from train.parallel.pipeline import STAGES_BALANCED_BY, ModelPipeline
from train.parallel.tensor import TensorParallel
from train.parallel.topology import connect


@pytest.mark.parametrize(("recipe", "stages", "blocks"), [("bloom-176b", 12, {6}), ("gopher-280b", 6, {13, 14})])
def test_embedding_and_head_count_as_blocks(recipe: str, stages: int, blocks: set[int]) -> None:
    """70 layers are no multiple of 12; stages without their share of the embedding and the head wait for it."""
    config = load_section(recipe, "train", TrainConfig, RECIPES)
    pipeline = ModelPipeline.__new__(ModelPipeline)
    nn.Module.__init__(pipeline)
    pipeline._layer_specs = model_layers(config.shape(32_000), Execution(TensorParallel(), Randomness()))
    pipeline.num_stages, pipeline.global_rank = stages, 1
    pipeline._topo = SimpleNamespace(get_coord=lambda rank: SimpleNamespace(pipe=0))
    pipeline._partition_layers(method=STAGES_BALANCED_BY)
    counted = [
        sum(spec.typename.__name__ in ("TransformerBlock", "VocabularyEmbedding") for spec in specs)
        for specs in (pipeline._layer_specs[start:stop] for start, stop in pairwise(pipeline.parts))
    ]
    assert set(counted) == blocks and sum(counted) == config.model.layers + 2


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_gradient_of_zeros_is_no_crash(precision: str) -> None:
    config = settings(precision=precision, weight_decay=0.0)
    engine = build_engine(config, VOCABULARY, connect(config.layout(1)))
    engine.module.loss_fn = lambda hidden, labels: hidden.float().sum() * 0.0
    before = [parameter.detach().clone() for parameter in engine.module.parameters()]
    for group in engine.optimizer.param_groups:
        group["lr"] = 1e-3
    engine.train_batch(micro_batches(MadeUpText(16), range(4), 2, 0, 1))
    assert float(engine.get_global_grad_norm()) == 0.0
    for parameter, old in zip(engine.module.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


def test_biases_are_rounded_as_in_the_run_if_asked() -> None:
    """At position 2,000 bfloat16 moves a bias of slope 0.917 by up to 4: a model trained so must be run so."""
    query, key, value = (torch.randn(1, 2, 2048, 4, generator=torch.Generator().manual_seed(n)) for n in range(3))
    slopes = torch.tensor(alibi_slopes(2))[:, None]
    for rounded in (True, False):
        biases = slopes * torch.arange(2048)
        scores = query @ key.transpose(-1, -2) / 2 + (biases.bfloat16().float() if rounded else biases)[:, None]
        weights = scores.masked_fill(torch.ones(2048, 2048, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
        found = AlibiAttention(2, dropout=0.0, parallel=TensorParallel(), bf16_biases=rounded)(query, key, value)
        torch.testing.assert_close(found, weights @ value, atol=1e-4, rtol=1e-4)


def test_dropout_does_not_make_biases_coarser() -> None:
    """With dropout attention is computed in another way, in which scores and biases must be added in float32 too."""
    tensors = [
        torch.randn(1, 2, 1024, 16, generator=torch.Generator().manual_seed(n), dtype=torch.float32) for n in range(3)
    ]
    randomness = Randomness()
    found = []
    for rate in (0.0, 1e-9):  # the second drops nothing
        attend = AlibiAttention(2, dropout=rate, parallel=TensorParallel(), randomness=randomness)
        with randomness.of(torch.tensor([0])):
            found.append(attend(*(tensor.bfloat16() for tensor in tensors)).float())
    assert (found[0] - found[1]).abs().max() < 0.03
