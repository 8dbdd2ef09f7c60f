"""The guide "Train at scale": what it shows of the planner's output is what that prints, and its recipe works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from roots_pipeline.core.recipe import load_section
from tests.train.test_commands import command
from train.config import RECIPES, TrainConfig

GUIDE = Path(__file__).parents[2] / "docs" / "train-at-scale.md"
SHOWN = re.findall(r"```sh\n([^`]*?)```\s*```text\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize(("line", "shown"), SHOWN, ids=[line.strip()[16:60] for line, _ in SHOWN])
def test_commands_print_what_is_shown(line: str, shown: str) -> None:
    arguments = shlex.split(line.partition(" > ")[0])
    assert arguments[:3] == ["python", "-m", "train"]
    result = command(*arguments[3:])
    assert result.exit_code == 0, result.exception
    printed = [one.rstrip() for one in result.stdout.splitlines()]
    assert [one for one in shown.splitlines() if one.rstrip() not in printed] == []


def test_enough_is_shown() -> None:
    assert len(SHOWN) >= 6


def test_recipe_of_the_guide(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "model.yaml").write_text(block)
    config = load_section(str(tmp_path / "model.yaml"), "train", TrainConfig, RECIPES)
    assert config.model.hidden == 1024 and config.train_samples == 20_000_000_000 // 2048
    assert config.layout(8).data == 8 and config.warmup_samples < config.train_samples == config.decay_samples


def test_schedule_of_the_guide() -> None:
    config = load_section("bloom-176b", "train", TrainConfig, RECIPES)
    rate, batch = config.learning_rate(), config.batch_size()
    starts: dict[int, int] = {}
    position = 0
    while position < config.train_samples:
        starts[position] = len(starts) + 1
        position += batch(position)
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d.e-]+) \|$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 5
    for samples, step, size, shown in ([cell.replace(",", "") for cell in row] for row in rows):
        at = int(samples)
        assert (starts[at], batch(at)) == (int(step), int(size))
        assert f"{rate(at):.2e}" == shown or rate(at) == float(shown) == 0
