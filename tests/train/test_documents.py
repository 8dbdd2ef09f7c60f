"""Attention within documents: against plain models, against each document alone, in gradients and in the loop."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from roots_pipeline.core.errors import TrainingError
from tests.train import reference, reference_gopher
from tests.train.scenario import VOCABULARY, MadeUpText, numbers, settings, train
from train.data import document_starts
from train.engine import build_engine
from train.model.architecture import TIED, published_name
from train.model.attention import AlibiAttention, alibi_table
from train.model.documents import unseen_pairs
from train.model.flex import attention_by_distance, attention_by_key
from train.model.plain import plain_attention
from train.model.randomness import Randomness
from train.model.relative import by_key
from train.parallel.tensor import TensorParallel
from train.parallel.topology import connect

HEADS, LAYERS, LENGTH = 4, 2, 33
PLAIN: dict[str, ModuleType] = {"bloom": reference, "gopher": reference_gopher}
# One document, documents of one token, an end at the last input, an end behind it (only the label is another's).
CUTS = [[], [1, 2, 9, 10, 30], [16, 32], [5, 33]]
CPU = torch.device("cpu")


class Packed:
    """Samples of random tokens with documents that begin at `cuts`."""

    def __init__(self, cuts: list[list[int]], length: int) -> None:
        self.cuts, self.length = cuts, length

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        return np.random.default_rng(index).integers(0, VOCABULARY, self.length + 1)

    def boundaries(self, index: int) -> npt.NDArray[np.int64]:
        return np.array([0, *self.cuts[index], self.length + 1])


SOURCE = Packed(CUTS, LENGTH)


def built(kind: str, recompute: str = "none") -> Any:
    """A model with random weights everywhere."""
    config = settings(
        model={"kind": kind, "hidden": 32, "layers": LAYERS, "heads": HEADS, "init_std": 0.2},
        sequence_length=LENGTH, activation_checkpointing=recompute,
    )  # fmt: skip
    model = build_engine(config, VOCABULARY, connect(config.layout(1))).module.eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def weights(model: Any) -> dict[str, Tensor]:
    found = {}
    for own, parameter in model.named_parameters():
        head, rest = own.split(".", 1)
        found[f"{TIED}.weight" if head == "tied_modules" else published_name(int(head), LAYERS, rest)] = parameter
    return found


def inputs() -> Tensor:
    return torch.from_numpy(np.stack([SOURCE[index][:-1] for index in range(len(SOURCE))]))


def document_numbers() -> Tensor:
    """Of each input, by counting the documents that have begun."""
    return torch.tensor([[sum(cut <= place for cut in cuts) for place in range(LENGTH)] for cuts in CUTS])


def logits(model: Any, tokens: Tensor, *, masked: bool) -> Tensor:
    model.begin_step(np.arange(len(tokens)), document_starts(SOURCE, LENGTH) if masked else None)
    hidden: Tensor = model(tokens)
    result: Tensor = hidden @ model.tied_modules[TIED].weight.T
    return result


@pytest.mark.parametrize("kind", PLAIN)
def test_logits_are_those_of_the_plain_model_and_of_each_document_alone(kind: str) -> None:
    model, tokens = built(kind), inputs()
    with torch.no_grad():
        found = logits(model, tokens, masked=True)
        expected = PLAIN[kind].logits(weights(model), HEADS, tokens, document_numbers())
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)
        unmasked = logits(model, tokens, masked=False)
        assert torch.equal(found[0], unmasked[0]) or (found[0] - unmasked[0]).abs().max() < 1e-5
        for sample, cuts in enumerate(CUTS):
            for start, stop in zip([0, *cuts], [*cuts, LENGTH], strict=True):
                if start == LENGTH:
                    continue
                alone = logits(model, tokens[sample : sample + 1, start:stop], masked=False)[0]
                torch.testing.assert_close(found[sample, start:stop], alone, atol=1e-5, rtol=1e-5)
        assert (found[1] - unmasked[1])[3:].abs().max() > 0.1  # the mask does something


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_gradients_are_those_of_the_plain_model_also_when_recomputed(kind: str, recompute: str) -> None:
    """Backward runs after the model has moved on to other samples, as in a pipeline."""
    model, tokens = built(kind, recompute).train(), inputs()
    probe = torch.randn(*tokens.shape, VOCABULARY, generator=torch.Generator().manual_seed(1))
    found = logits(model, tokens, masked=True)
    with torch.no_grad():
        model.begin_step(np.array([3, 2, 1, 0]), document_starts(SOURCE, LENGTH))
        model(tokens)
    expected = PLAIN[kind].logits(weights(model), HEADS, tokens, document_numbers())
    to = list(model.parameters())
    gradients, truth = (torch.autograd.grad((result * probe).sum(), to) for result in (found, expected))
    for mine, theirs in zip(gradients, truth, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-4 * float(theirs.abs().max()), rtol=1e-3)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_keeps_within_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and gradients of a GPU's kernels, in their uncompiled form (see test_attention)."""
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    torch.manual_seed(0)
    batch = len(CUTS)
    query, key, value = (torch.randn(batch, 3, LENGTH, 16).requires_grad_() for _ in range(3))
    by_distance, slope = torch.randn(batch, 3, LENGTH, LENGTH).requires_grad_(), torch.randn(batch, 3, LENGTH, 16)
    starts, table = document_starts(SOURCE, LENGTH)(np.arange(batch)), alibi_table(3, 0, 3, LENGTH, torch.float32, CPU)
    unseen = reference.unseen(torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None], document_numbers())[:, None]
    assert torch.equal(unseen_pairs(LENGTH, CPU, starts), unseen)
    plain = [
        plain_attention(query, key, value, bias.masked_fill(unseen, -torch.inf), 0.0, "", Randomness(), 0)
        for bias in (table[:, None].expand(batch, 3, LENGTH, LENGTH), by_key(by_distance))
    ]
    fast = [
        attention_by_key(query, key, value, table, starts, flex_attention),
        attention_by_distance(query, key, value, by_distance, starts, flex_attention),
    ]
    tensors = [query, key, value]
    for found, expected, to in zip(fast, plain, (tensors, [*tensors, by_distance]), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        for mine, theirs in zip(*(torch.autograd.grad(y, to, slope) for y in (found, expected)), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


def test_a_document_late_in_a_sample_is_not_rounded_more_coarsely_in_bfloat16() -> None:
    """BLOOM's biases at key 500 are multiples of 2 in bfloat16, those at key 10 of 0.03."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 4, 512, 8, dtype=torch.bfloat16) for _ in range(3))
    attend = AlibiAttention(4, dropout=0.0, parallel=TensorParallel())
    starts = torch.tensor([[0] * 500 + [500] * 12], dtype=torch.int32)
    late = attend(query, key, value, starts)[:, :, 500:]
    alone = attend(*(part[:, :, 500:] for part in (query, key, value)))
    torch.testing.assert_close(late, alone, atol=2e-2, rtol=1e-2)
    across = attend(query, key, value)[:, :, 500:]
    assert (late - across).abs().max() > 0.1


@given(st.lists(st.sets(st.integers(1, 9)), min_size=1, max_size=4))
def test_starts_by_counting(cuts: list[set[int]]) -> None:
    source = Packed([sorted(some) for some in cuts], 9)
    found = document_starts(source, 9)(np.arange(len(cuts)))
    assert found.tolist() == [[max([0, *(c for c in some if c <= place)]) for place in range(9)] for some in cuts]


def test_training_and_validation_are_those_of_the_plain_model(tmp_path: Path) -> None:
    """The losses before and in the first step, dropout off; a micro-batch is half of the step."""
    config = settings(attention_within_documents=True, steps=2, validation_samples=6)
    records = train(config, tmp_path / "within")
    model = build_engine(config, VOCABULARY, connect(config.layout(1))).module
    source = MadeUpText(16)

    def loss(samples: range) -> float:
        tokens = torch.from_numpy(np.stack([source[index] for index in samples]))
        ends = [source.boundaries(index)[1:] for index in samples]
        documents = torch.tensor([[sum(place >= end for end in row) for place in range(16)] for row in ends])
        with torch.no_grad():
            found = reference.logits(weights(model), HEADS, tokens[:, :-1], documents)
        # The first token of a document is a label like any other.
        return F.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten()).item()

    assert records[0]["validation_loss"] == pytest.approx(loss(range(6)), abs=1e-5)
    assert records[1]["loss"] == pytest.approx(loss(range(4)), abs=1e-5)
    across = train(settings(steps=2, validation_samples=6), tmp_path / "across")
    assert abs(across[1]["loss"] - records[1]["loss"]) > 1e-5
    assert numbers(train(config, tmp_path / "again")) == numbers(records)


def test_samples_without_documents_are_refused() -> None:
    with pytest.raises(TrainingError, match="do not tell where documents begin"):
        document_starts([np.arange(5)], 4)
