"""Weights of a Hugging Face folder begin a run: what is exported, imported and exported again stays the same bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import BloomForCausalLM

from roots_pipeline.core.errors import RootbloomError
from tests.train.test_commands import Trained, command, prepare
from train.import_weights import own_name
from train.model.architecture import TIED, published_name
from train.model.shape import Shape
from train.standalone import Standalone

EXPORT = ("model", "export")


@pytest.fixture(scope="module", params=["bloom", "gopher"])
def trained(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Trained:
    """A finished and exported run of each kind of model."""
    run = tmp_path_factory.mktemp(str(request.param))
    recipe = prepare(run)
    recipe.write_text(recipe.read_text().replace("model:", f"model:\n    kind: {request.param}", 1))
    options = ("run", "--recipe", str(recipe), "--run", str(run))
    results = [command(*options), command("export", "--run", str(run))]
    assert [result.exit_code for result in results] == [0, 0], results
    return Trained(run, options, results)


@pytest.fixture
def fresh(trained: Trained, tmp_path: Path) -> Path:
    """The same run before its training."""
    shutil.copytree(trained.run, tmp_path / "fresh", ignore=shutil.ignore_patterns("model"))
    return tmp_path / "fresh"


def bring(source: Path, fresh: Path) -> None:
    result = command("import", str(source), "--recipe", str(fresh / "recipe.yaml"), "--run", str(fresh), "--quiet")
    if result.exception:
        raise result.exception


def contents(folder: Path) -> dict[str, bytes]:
    """The files of an export but for its manifest and card: these tell where the weights come from."""
    told = ("manifest.json", "README.md")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in told}


def test_export_import_export_is_byte_identical(trained: Trained, fresh: Path) -> None:
    source = trained.run.joinpath(*EXPORT)
    bring(source, fresh)
    assert command("export", "--run", str(fresh)).exit_code == 0
    assert contents(fresh.joinpath(*EXPORT)) == contents(source)


def test_imported_weights_are_trained_further(trained: Trained, fresh: Path) -> None:
    bring(trained.run.joinpath(*EXPORT), fresh)
    result = command("run", "--recipe", str(fresh / "recipe.yaml"), "--run", str(fresh))
    assert result.exit_code == 0 and "Continuing after step 0 (0 samples) from step_00000000_universal" in result.stderr
    before, after = (
        [orjson.loads(line) for line in (run / "model" / "log.jsonl").read_bytes().splitlines()]
        for run in (trained.run, fresh)
    )
    losses = [[record["validation_loss"] for record in log if "validation_loss" in record] for log in (before, after)]
    assert losses[1][0] == pytest.approx(losses[0][-1], rel=1e-6) and losses[1][-1] < losses[1][0]
    newest = sorted((fresh / "model" / "checkpoints").glob("step_*"))[-1]
    assert len(json.loads((newest / "manifest.json").read_text())["origin"]) == 32


def test_weights_in_several_files_and_without_prefix(trained: Trained, fresh: Path, tmp_path: Path) -> None:
    source = tmp_path / "several"
    shutil.copytree(trained.run.joinpath(*EXPORT), source)
    whole = load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    names, place = sorted(whole), {}
    for number, part in enumerate((names[:5], names[5:])):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        # The original BLOOM has no prefix, and its weights are in bfloat16 or float16.
        save_file({name.removeprefix("transformer."): whole[name] for name in part}, source / file)
        place |= {name.removeprefix("transformer."): file for name in part}
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    bring(source, fresh)
    command("export", "--run", str(fresh))
    assert contents(fresh.joinpath(*EXPORT)) == contents(trained.run.joinpath(*EXPORT))


def test_stripped_rows_come_back_as_fresh_ones(trained: Trained, fresh: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained.run, copy)
    command("export", "--run", str(copy), "--strip-padding")
    bring(copy.joinpath(*EXPORT), fresh)
    command("export", "--run", str(fresh))
    name = f"transformer.{TIED}.weight"
    short, filled = (load_file(run.joinpath(*EXPORT) / "model.safetensors")[name] for run in (copy, fresh))
    assert len(short) < len(filled) == 512 and torch.equal(filled[: len(short)], short)
    assert 0.03 < filled[len(short) :].std() < 0.07  # the recipe's init_std is 0.05


def untie(source: Path) -> None:
    weights = load_file(source / "model.safetensors")
    weights["lm_head.weight"] = weights[f"transformer.{TIED}.weight"] + 1
    save_file(weights, source / "model.safetensors")


def drop(source: Path) -> None:
    weights = load_file(source / "model.safetensors")
    del weights["transformer.ln_f.weight"]
    save_file(weights, source / "model.safetensors")


def pickled(source: Path) -> None:
    (source / "model.safetensors").rename(source / "pytorch_model.bin")


def deeper(source: Path) -> None:
    config = json.loads((source / "config.json").read_text())
    key = "n_layer" if "n_layer" in config else "layers"
    (source / "config.json").write_text(json.dumps({**config, key: 3}))


def another_kind(source: Path) -> None:
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))


def other_tokens(source: Path) -> None:
    words = Tokenizer.from_file(str(source / "tokenizer.json"))
    words.add_tokens(["another"])
    words.save(str(source / "tokenizer.json"))


def without_configuration(source: Path) -> None:
    (source / "config.json").unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (untie, "its head is not tied to its embedding"),
        (drop, r"unknown \[\], missing \['ln_f\.weight'\]"),
        (pickled, r"no model\.safetensors here\. Pickled weights \(\.bin\) are not read"),
        (deeper, r"its n_layer is 3, the recipe's model\.layers is 2\. Set train\.model\.layers to 3"),
        (another_kind, "this is a gpt2, the recipe trains a"),
        (other_tokens, r"trained with another tokenizer: 'another' is \d+ there and None in this run"),
        (without_configuration, r"no config\.json here"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    trained: Trained, fresh: Path, tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    source = tmp_path / "source"
    shutil.copytree(trained.run.joinpath(*EXPORT), source)
    change(source)
    with pytest.raises(RootbloomError, match=message):
        bring(source, fresh)


def test_run_with_checkpoints_is_left_alone(trained: Trained) -> None:
    with pytest.raises(RootbloomError, match="this run has checkpoints already"):
        bring(trained.run.joinpath(*EXPORT), trained.run)


def test_exported_gopher_computes_what_was_trained(trained: Trained) -> None:
    """`generate` reads the export; its loss on the validation text is measured through the same export elsewhere."""
    printed = command("generate", "--run", str(trained.run), "--prompt", "the quick", "--tokens", "7", "--quiet")
    again = command("generate", "--run", str(trained.run), "--prompt", "the quick", "--tokens", "7", "--quiet")
    assert printed.exit_code == 0 and printed.stdout == again.stdout and len(printed.stdout) > len("the quick\n")
    config = json.loads((trained.run.joinpath(*EXPORT) / "config.json").read_text())
    if config["model_type"] == "bloom":
        model = BloomForCausalLM.from_pretrained(str(trained.run.joinpath(*EXPORT)))
        assert model.lm_head.weight is model.transformer.word_embeddings.weight


@pytest.mark.parametrize("kind", ["bloom", "gopher"])
def test_own_names_are_the_inverse_of_published_names(kind: str) -> None:
    model = Standalone(Shape(16, 3, 2, 20, kind=kind))  # type: ignore[arg-type]
    for position, layer in enumerate(model.layers):
        for own, _ in layer.named_parameters():
            name = f"tied_modules.{TIED}.{own}" if position == 0 else f"{position}.{own}"
            assert own_name(published_name(position, 3, own), 3) == name
