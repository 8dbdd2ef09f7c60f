"""Training in one process: against a hand-written loop, over a stop, on one batch, and when it goes wrong."""

from __future__ import annotations

import math
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pytest
import torch
import torch.nn.functional as F

from roots_pipeline.core.errors import StaleDataError, TrainingError
from tests.train import reference
from tests.train.scenario import MadeUpText, make_trainer, numbers, settings, train
from train.export import published_parameters
from train.saved import newest_complete


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The default run, uninterrupted."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, train(settings(), folder)


def test_losses_equal_a_plain_model_with_plain_adamw(tmp_path: Path) -> None:
    """DeepSpeed, ZeRO, accumulation, clipping and our layers together are one textbook training step."""
    config = settings(steps=6, save_every=1, keep=99)
    trainer = make_trainer(config, tmp_path, stop_after=1)
    trainer.run()
    # The first step has learning rate 0, so its checkpoint holds the initial values.
    saved = newest_complete(tmp_path / "checkpoints", print)
    assert saved is not None
    weights = {
        name.removeprefix("transformer."): values.clone().requires_grad_()
        for name, values in published_parameters(saved, 10**6)
    }
    records = numbers([record for record in train(config, tmp_path) if "loss" in record])
    matrices = [weight for weight in weights.values() if weight.ndim > 1]
    vectors = [weight for weight in weights.values() if weight.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        betas=config.betas,
        eps=config.eps,
    )
    text, rate = MadeUpText(config.sequence_length), config.learning_rate()
    for step, record in enumerate(records):
        tokens = torch.from_numpy(np.stack([text[4 * step + sample] for sample in range(4)]))
        logits = reference.logits(weights, config.model.heads, tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(weights.values(), config.clip)
        for group in optimizer.param_groups:
            group["lr"] = rate(4 * step)
        optimizer.step()
        assert record[2:5] == pytest.approx((loss.item(), norm.item(), rate(4 * step)), rel=2e-5), step
    assert records[-1][2] < records[0][2]


@pytest.mark.parametrize("stop", [1, 5])
def test_stopped_and_resumed_equals_uninterrupted_digit_for_digit(
    stop: int, tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    train(settings(), tmp_path, stop_after=stop)
    assert numbers(train(settings(), tmp_path)) == numbers(whole[1])


def test_dropout_resumes_digit_for_digit_and_is_off_in_validation(
    tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    config = settings(dropout=0.2)
    uninterrupted = numbers(train(config, tmp_path / "whole"))
    train(config, tmp_path / "stopped", stop_after=3)
    assert numbers(train(config, tmp_path / "stopped")) == uninterrupted
    assert uninterrupted[0] == numbers(whole[1])[0] and uninterrupted[1] != numbers(whole[1])[1]


def test_crash_after_a_save_repeats_the_lost_steps_and_logs_each_once(
    tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    class Breaks(MadeUpText):
        def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
            if index == 22:  # in step 6; step 3 was saved
                raise OSError("the disk went away")
            return super().__getitem__(index)

    with pytest.raises(OSError, match="went away"):
        train(settings(), tmp_path, source=Breaks(16))
    with (tmp_path / "log.jsonl").open("ab") as log:
        log.write(b'{"step": 6, "lo')  # and the last line was cut short
    assert numbers(train(settings(), tmp_path)) == numbers(whole[1])


def test_activation_checkpointing_changes_nothing(tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    again = numbers(train(settings(activation_checkpointing=True), tmp_path))
    for mine, plain in zip(again, numbers(whole[1]), strict=True):
        assert mine == pytest.approx(plain, rel=1e-6)


def test_one_batch_can_be_learnt_by_heart(tmp_path: Path) -> None:
    config = settings(steps=60, warmup_samples=8, lr=1e-2, min_lr=1e-2, save_every=0, evaluate_every=0)
    records = train(config, tmp_path, source=MadeUpText(16, distinct=4))
    losses = [record["loss"] for record in records if "loss" in record]
    assert losses[0] == pytest.approx(math.log(96), abs=0.5) and losses[-1] < 0.1


def test_no_loader_and_no_further_process_reads_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BLOOM's validation loaders deadlocked three times."""

    def refuse(*arguments: Any, **more: Any) -> None:
        raise AssertionError("a loader")

    monkeypatch.setattr(torch.utils.data.DataLoader, "__init__", refuse)
    assert len(train(settings(steps=2), tmp_path)) == 4 and not multiprocessing.active_children()


def test_finished_run_trains_no_further(tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, records = whole
    assert make_trainer(settings(), folder).run() == (8, 32)
    assert [orjson.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()] == records


def test_other_settings_do_not_continue_a_run(whole: tuple[Path, list[dict[str, Any]]]) -> None:
    with pytest.raises(StaleDataError, match=r"another run: lr was 0\.005, now it is 0\.004"):
        train(settings(lr=4e-3), whole[0])


def test_skipped_samples_are_passed_over_and_the_rest_stays_in_place(tmp_path: Path) -> None:
    """Steps read 4 samples: 0-3, 4 5 12 13, 14-17, ...; rates and samples of the log are those of the position."""

    read: list[int] = []

    class Noted(MadeUpText):
        def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
            read.append(index)
            return super().__getitem__(index)

    config = settings(skip_samples=[[6, 12], [20, 21]], validation_samples=0, dropout=0.1)
    records = train(config, tmp_path / "whole", source=Noted(16))
    assert read == [n for n in range(31) if not (6 <= n < 12 or n == 20)]
    assert [record["samples"] for record in records] == [4, 14, 18, 23, 27, 31]
    rate = config.learning_rate()
    assert [record["learning_rate"] for record in records] == [rate(n) for n in (0, 4, 14, 18, 23, 27)]
    train(config, tmp_path / "parts", stop_after=3)
    with pytest.raises(StaleDataError, match=r"skip_samples was \[\[6, 12\], \[20, 21\]\]"):
        train(config.model_copy(update={"skip_samples": ((6, 13),)}), tmp_path / "parts")
    later = config.model_copy(update={"skip_samples": ((6, 12), (20, 21), (25, 40))})
    assert numbers(train(later, tmp_path / "parts"))[:4] == numbers(records)[:4]
    assert numbers(train(config, tmp_path / "again", stop_after=4))[:4] == numbers(records)[:4]
    assert numbers(train(config, tmp_path / "again")) == numbers(records)


def test_diverging_run_stops_with_the_step_and_the_samples(tmp_path: Path) -> None:
    config = settings(lr=1e18, min_lr=1e18, clip=1e9, weight_decay=0.0, steps=20, save_every=1)
    with pytest.raises(TrainingError, match=r"in step \d+, which read samples \d+ to \d+.*Lower train.lr"):
        train(config, tmp_path)
    assert newest_complete(tmp_path / "checkpoints", print) is not None


def test_log_and_board_hold_speed_and_validation(whole: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, records = whole
    steps = [record for record in records if "loss" in record]
    assert [record["step"] for record in steps] == list(range(1, 9))
    assert all(record["tokens_per_second"] > 0 and 0 < record["share_of_matmul_peak"] < 1 for record in steps)
    checks = [record for record in records if "validation_loss" in record]
    assert [record["step"] for record in checks] == [0, 4, 8]
    assert len({record["unigram_entropy"] for record in checks}) == 1
    blend = checks[-1]["validation"]["blend"]
    assert blend["loss"] == checks[-1]["validation_loss"]
    assert blend["bits_per_byte"] == pytest.approx(blend["loss"] / math.log(2) / 2)  # tokens of two bytes
    assert list((folder / "tensorboard").glob("events.out.tfevents.*"))
