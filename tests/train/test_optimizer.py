"""Which parameters decay."""

from __future__ import annotations

from tests.train.scenario import VOCABULARY, settings
from train.engine import build_engine
from train.optimizer import parameter_groups
from train.parallel.topology import connect


def test_only_matrices_decay_and_the_embedding_norm_does_not() -> None:
    config = settings()
    model = build_engine(config, VOCABULARY, connect(config.layout(1))).module
    decayed, kept = parameter_groups(model, 0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    assert {"1.norm.weight", "1.norm.bias"} <= {names[id(parameter)] for parameter in kept["params"]}
    for parameter in decayed["params"]:
        assert names[id(parameter)].endswith("weight") and "norm" not in names[id(parameter)]
    for parameter in kept["params"]:
        assert "norm" in names[id(parameter)] or names[id(parameter)].endswith("bias")
    assert len(decayed["params"]) + len(kept["params"]) == len(names)
