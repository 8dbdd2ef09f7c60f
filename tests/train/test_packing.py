"""Packed samples: what does not count adds nothing, and the loss is the mean over all labels of the global batch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import torch
import torch.nn.functional as F
import yaml
from torch import Tensor

from mixtures.dataset import BlendedDataset
from mixtures.lock import read_lock
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.manifest import read_manifest
from tests.train import reference
from tests.train.scenario import VOCABULARY, MadeUpText, PackedText, make_trainer, numbers, settings, train
from tests.train.test_commands import RECIPE, command, prepare
from tests.train.test_documents import HEADS, weights
from train.data import NOT_COUNTED, labels_of_micro_batch, micro_batches
from train.engine import build_engine
from train.incidents import documents_of
from train.model import loss as module
from train.model.loss import vocabulary_loss
from train.parallel.tensor import TensorParallel
from train.parallel.topology import connect
from train.same_data import check_same_lock
from train.validation import ValidationSet, count_tokens

SOURCE = PackedText(16)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loss_and_gradients_pass_over_what_does_not_count(
    chunk: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(chunk)
    monkeypatch.setitem(module._LOGITS_AT_ONCE, "cpu", chunk * 50)
    hidden = (torch.randn(3, 7, 8) * 3).to(dtype).requires_grad_()
    weight = torch.randn(50, 8).to(dtype).requires_grad_()
    labels = torch.randint(0, 50, (3, 7))
    labels[torch.rand(3, 7) < 0.4] = NOT_COUNTED
    plain = F.cross_entropy((hidden @ weight.T).float().flatten(0, 1), labels.flatten(), reduction="sum") / 5.5
    expected = torch.autograd.grad(plain * 0.25, (hidden, weight))
    found = vocabulary_loss(hidden, weight, labels, TensorParallel(), 5.5)
    exact = dtype == torch.float32
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-6 if exact else 1e-2)
    for mine, theirs in zip(torch.autograd.grad(found * 0.25, (hidden, weight)), expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6 if exact else 1e-2, rtol=1e-5 if exact else 3e-2)
    nothing = vocabulary_loss(hidden, weight, torch.full((3, 7), NOT_COUNTED), TensorParallel(), 5.5)
    gradients = torch.autograd.grad(nothing, (hidden, weight))
    assert nothing.item() == 0.0 and not any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("micro", [1, 2, 4])
def test_labels_that_do_not_count_are_marked_and_inputs_stay(micro: int) -> None:
    for start, (inputs, labels) in enumerate(micro_batches(SOURCE, range(4, 12), micro, 0, 1)):
        for row in range(micro):
            index = 4 + start * micro + row
            tokens, counted = SOURCE[index], SOURCE.counted(index)
            assert inputs[row].tolist() == tokens[:-1].tolist()
            assert labels[row].tolist() == np.where(counted, tokens[1:], NOT_COUNTED).tolist()
    average = labels_of_micro_batch(SOURCE, range(4, 12), micro)
    assert average == SOURCE.labels(range(4, 12)) * micro / 8
    assert labels_of_micro_batch(MadeUpText(16), range(8), micro) is None


def one_loss(model: Any, samples: range) -> Tensor:
    """Cross-entropy of the plain model, padding and continued pieces left out, in one piece."""
    tokens = torch.from_numpy(np.stack([SOURCE[index] for index in samples]))
    ends = [SOURCE.boundaries(index)[1:] for index in samples]
    documents = torch.tensor([[sum(place >= end for end in row) for place in range(16)] for row in ends])
    counted = torch.from_numpy(np.stack([SOURCE.counted(index) for index in samples]))
    found = reference.logits(weights(model), HEADS, tokens[:, :-1], documents)
    losses = F.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")[counted.flatten()]
    return losses.sum() / len(losses)


@pytest.mark.parametrize("micro", [1, 2, 4])
def test_training_and_validation_are_those_of_the_plain_model(tmp_path: Path, micro: int) -> None:
    """Losses before and in the first step and its gradient norm, whatever the micro-batch; the log counts labels."""
    config = settings(attention_within_documents=True, steps=2, validation_samples=4, micro_batch=micro)
    records = train(config, tmp_path / "packed", source=SOURCE)
    model = build_engine(config, VOCABULARY, connect(config.layout(1))).module
    loss = one_loss(model, range(4))
    assert records[0]["validation_loss"] == pytest.approx(loss.item(), abs=1e-5)
    assert records[1]["loss"] == pytest.approx(loss.item(), abs=1e-5)
    gradients = torch.autograd.grad(loss, list(weights(model).values()))
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    assert records[1]["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    assert [record["labels"] for record in records if "loss" in record] == [
        SOURCE.labels(range(first, first + 4)) for first in (0, 4)
    ]


def test_what_the_padding_is_does_not_matter(tmp_path: Path) -> None:
    first = train(settings(steps=4), tmp_path / "a", source=SOURCE)
    assert numbers(train(settings(steps=4), tmp_path / "b", source=PackedText(16, padding=95))) == numbers(first)


def test_packed_samples_that_are_full_are_a_stream(tmp_path: Path) -> None:
    class Full(PackedText):
        def real(self, index: int) -> int:
            return self.length + 1

        def counted(self, index: int) -> Any:
            return np.ones(self.length, bool)

    packed, plain = (train(settings(steps=4), tmp_path / name, source=source)
                     for name, source in (("a", Full(16)), ("b", MadeUpText(16))))  # fmt: skip
    for mine, other in zip(numbers(packed), numbers(plain), strict=True):
        assert mine == pytest.approx(other, rel=1e-5, abs=1e-6)
    assert not any("labels" in record for record in plain)


def test_a_batch_without_labels_changes_nothing_but_decays(tmp_path: Path) -> None:
    class Lonely(PackedText):
        def real(self, index: int) -> int:
            return 1

    trainer = make_trainer(settings(steps=2, weight_decay=0.0), tmp_path, source=Lonely(16))
    before = [parameter.detach().clone() for parameter in trainer.engine.module.parameters()]
    trainer.run()
    for was, now in zip(before, trainer.engine.module.parameters(), strict=True):
        assert torch.equal(was, now)
    records = [orjson.loads(line) for line in (tmp_path / "log.jsonl").read_bytes().splitlines()]
    assert [record["loss"] for record in records if "loss" in record] == [0.0, 0.0]
    assert count_tokens(ValidationSet("x", Lonely(16), 3), np.full(VOCABULARY, 2)).entropy == 0.0


def test_bits_per_byte_of_the_labels_that_count() -> None:
    lengths = np.arange(VOCABULARY) % 5
    labels = Counter(token for index in range(6) for token in SOURCE[index][1:][SOURCE.counted(index)].tolist())
    total = sum(labels.values())
    found = count_tokens(ValidationSet("x", SOURCE, 6), lengths)
    assert found.entropy == pytest.approx(-sum(n / total * math.log(n / total) for n in labels.values()))
    assert found.bytes_per_token == pytest.approx(sum(n * (token % 5) for token, n in labels.items()) / total)


@pytest.fixture(scope="module")
def packed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a packed mixture, trained in two parts."""
    run = tmp_path_factory.mktemp("packed")
    prepare(run, packing="best_fit")
    recipe = {**RECIPE, "attention_within_documents": True, "sequence_length": 24}
    (run / "recipe.yaml").write_text(yaml.safe_dump({"train": recipe}))
    for stop in (["--stop-after", "3"], []):
        done = command("run", "--recipe", str(run / "recipe.yaml"), "--run", str(run), *stop)
        assert done.exit_code == 0, done.exception
    return run


def test_a_run_on_a_packed_mixture(packed_run: Path) -> None:
    source = BlendedDataset(str(packed_run / "mixture" / "mixture.lock.yaml"), "train", 24, sequence_length=24)
    assert source.packed
    records = [orjson.loads(line) for line in (packed_run / "model" / "log.jsonl").read_bytes().splitlines()]
    steps = [record for record in records if "loss" in record]
    assert [record["labels"] for record in steps] == [source.labels(range(k, k + 4)) for k in range(0, 24, 4)]
    counts = read_manifest(str(packed_run / "model")).counts
    assert counts["labels"] == sum(record["labels"] for record in steps) < counts["tokens"] == 24 * 24
    assert all(record["validation"]["blend"]["bits_per_byte"] > 0 for record in records if "validation" in record)


def test_from_steps_of_packed_samples_to_documents_and_back(packed_run: Path) -> None:
    base = ("explain", "--run", str(packed_run), "--recipe", str(packed_run / "recipe.yaml"))
    by_step = {step: {row["id"] for row in map(orjson.loads, command(*base, "--step", str(step)).stdout.splitlines())}
               for step in range(1, 7)}  # fmt: skip
    for id in sorted(set().union(*by_step.values()))[:4]:
        rows = [orjson.loads(line) for line in command(*base, id).stdout.splitlines()]
        assert {one for row in rows for one in row["steps"]} == {step for step, ids in by_step.items() if id in ids}
    source = BlendedDataset(str(packed_run / "mixture" / "mixture.lock.yaml"), "train", 24, sequence_length=24)
    told = documents_of(source, range(24))
    spans = [(k, span.start, span.tokens) for k in range(24) for span in source.spans(k)]
    assert [(one["sample"], one["start"], one["tokens"]) for one in told] == spans


def test_a_run_does_not_go_on_with_another_packing(packed_run: Path) -> None:
    lock = read_lock(str(packed_run / "mixture" / "mixture.lock.yaml"))
    with pytest.raises(StaleDataError, match="packing was best_fit, now stream"):
        check_same_lock(packed_run / "model", replace(lock, packing="stream"))
