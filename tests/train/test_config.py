"""Settings that do not fit together are refused with a message that names the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import load_section
from tests.train.scenario import settings
from train.config import RECIPES, TrainConfig
from train.parallel.layout import Layout


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"model": {"hidden": 30, "layers": 2, "heads": 4}}, "Use hidden 28 or 32, or heads 3 or 5"),
        ({"model": {"hidden": 36, "layers": 2, "heads": 6}, "tensor_parallel": 4}, "Use tensor_parallel 3 or 6"),
        (
            {"model": {"hidden": 32, "layers": 10, "heads": 4}, "pipeline_parallel": 5},
            "pipeline_parallel 1 or 2 or 3 or 4 or 6",
        ),
        ({"pipeline_parallel": 4}, "Use pipeline_parallel 1 or 2"),
        ({"tensor_parallel": 4, "sequence_parallel": True, "sequence_length": 18}, "Use sequence_length 20"),
        ({"micro_batch": 3}, "Use global_batch 6"),
        ({"train_samples": 3}, "Use more train_samples or a smaller global_batch"),
        ({"batch_ramp": {"start": 1, "increment": 2, "samples": 8}}, "Use an increment that divides"),
        ({"min_lr": 1.0}, "lower min_lr"),
        ({"warmup_lr": 1.0}, "Use a lower one"),
        ({"warmup_samples": 32}, "Use fewer warmup_samples"),
    ],
)
def test_sizes_that_do_not_fit_name_the_fix(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(ValueError, match="Value error") as caught:
        settings(**changes)
    assert fix in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "processes", "fix"),
    [
        ({"tensor_parallel": 2}, 3, "Use --processes 4"),
        ({"tensor_parallel": 2, "pipeline_parallel": 2}, 2, "Use --processes 4"),
        ({}, 4, "Use global_batch 8"),
        ({"global_batch": 8, "validation_samples": 4}, 4, "Use validation_samples 8"),
        (
            {"batch_ramp": {"start": 4, "increment": 2, "samples": 9}, "global_batch": 8, "validation_samples": 0},
            2,
            "Use batch_ramp.increment 4",
        ),
    ],
)
def test_processes_that_do_not_fit_name_the_fix(changes: dict[str, Any], processes: int, fix: str) -> None:
    with pytest.raises(RecipeError) as caught:
        settings(**changes).layout(processes)
    assert fix in str(caught.value)


def test_processes_are_shared_out() -> None:
    assert settings(tensor_parallel=2, pipeline_parallel=2).layout(8) == Layout(data=2, tensor=2, pipeline=2)


def test_vocabulary_that_cannot_be_cut_is_refused() -> None:
    settings(tensor_parallel=2).check_vocabulary(250_880)
    with pytest.raises(RecipeError, match="multiple of 4"):
        settings(tensor_parallel=4).check_vocabulary(250_682)


def test_misspelt_key_in_a_recipe_names_file_line_and_nearest_key(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("train:\n  lr: 1.0e-3\n  weight_decy: 0.1\n")
    with pytest.raises(RecipeError, match=r"mine\.yaml:3: unknown key 'weight_decy'.*'weight_decay'"):
        load_section(str(recipe), "train", TrainConfig, RECIPES)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("train:\n  lr: 1.0e-3\n  micro_batch: 3\n", 3),
        ("train:\n  global_batch: 7\n", 2),
        ("train:\n  lr: 1.0e-5\n  warmup_samples: 9999\n", 2),  # below the sample's min_lr: that is found first
        ("train:\n  log_every: 1\n  warmup_samples: 9999\n", 3),
        ("train:\n  log_every: 1\n  model: {hidden: 130, layers: 4, heads: 4}\n", 3),
    ],
)
def test_settings_that_do_not_fit_together_are_found_in_the_users_file(tmp_path: Path, text: str, line: int) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(text)
    with pytest.raises(RecipeError, match=rf"mine\.yaml:{line}: "):
        load_section(str(recipe), "train", TrainConfig, RECIPES)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_built_in_recipes_are_valid(path: Path) -> None:
    load_section(path.stem, "train", TrainConfig, RECIPES)


def test_published_layout_of_the_large_run() -> None:
    config = load_section("bloom-176b", "train", TrainConfig, RECIPES)
    assert config.layout(384) == Layout(data=8, tensor=4, pipeline=12)
    assert config.batch_size().steps(config.train_samples) == 115_311


def test_stages_may_differ_if_that_costs_little() -> None:
    """Gopher's 80 layers + 2 have no small divisor but 2; six stages of 13 or 14 wait 2.4% for the longest."""
    large = {"hidden": 32, "layers": 80, "heads": 4}
    assert settings(model=large, pipeline_parallel=6).layout(6) == Layout(1, 1, 6)
    with pytest.raises(ValueError, match="Use pipeline_parallel 1 or 2 or 3 or 4 or 5 or 6 or 7 or 12"):
        settings(model=large, pipeline_parallel=8)


def test_activation_checkpointing_may_be_true_or_false() -> None:
    assert settings(activation_checkpointing=True).activation_checkpointing == "full"
    assert settings(activation_checkpointing=False).activation_checkpointing == "none"
    with pytest.raises(ValueError, match="'selective'"):
        settings(activation_checkpointing="some")


def test_how_often_to_save_does_not_change_the_identity_of_a_run() -> None:
    assert settings(save_every=1).identity() == settings(save_every=7, micro_batch=1).identity()
    assert settings(lr=1e-3).identity() != settings(lr=2e-3).identity()


def test_counts_in_tokens_go_before_counts_in_samples() -> None:
    tokens = {"train_tokens": 300_000_000_000, "warmup_tokens": 4096, "decay_tokens": 41_000, "anneal_tokens": 5000}
    config = settings(sequence_length=2048, **tokens, lr_decay="wsd")
    assert config.train_samples == 146_484_375  # as in Gopher's recipes
    assert (config.warmup_samples, config.decay_samples, config.anneal_samples) == (2, 20, 2)
    for wrong in (-1, 1.5, "many", True):
        with pytest.raises(ValueError, match="Use a whole number of tokens"):
            settings(train_tokens=wrong)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr_decay": "wsd"}, "needs anneal_samples between 1 and 28"),
        ({"lr_decay": "wsd", "anneal_samples": 29}, "it is 29"),
        ({"weight_decay_start": 0.0}, "needs weight_decay_ramp"),
        ({"skip_samples": [[5, 5]]}, "holds no sample"),
        ({"operations": {"spikes": {"action": "panic"}}}, "rollback"),
    ],
)
def test_impossible_schedules_and_operations(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(**changes)
