"""The model against a plain one, against transformers, and against the published parameter counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, BloomForCausalLM

from tests.train import reference
from tests.train.conftest import WORDS
from tests.train.scenario import VOCABULARY, settings
from train.checkpoint import Checkpoints
from train.config import RECIPES, TrainConfig
from train.engine import build_engine
from train.export import export, published_parameters
from train.generate import generate
from train.model.architecture import TIED, partition_dim, published_name
from train.model.shape import Shape, model_flops_per_token, parameter_count
from train.parallel.topology import connect
from train.saved import newest_complete


class Exported:
    """A model with random weights everywhere (zero biases would hide mistakes), saved and exported."""

    def __init__(self, heads: int, folder: Path, tokenizer: Path, strip: bool = False, kind: str = "bloom") -> None:
        sizes = {"kind": kind, "hidden": heads * 8, "layers": 3, "heads": heads, "init_std": 0.2}
        config = settings(model=sizes)
        self.heads, place = heads, connect(config.layout(1))
        self.engine = build_engine(config, VOCABULARY, place)
        torch.manual_seed(heads)
        with torch.no_grad():
            for parameter in self.engine.module.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        Checkpoints(folder / "checkpoints", place, {}, keep=1).save(self.engine, 1, 4)
        saved = newest_complete(folder / "checkpoints", print)
        assert saved is not None
        self.saved, self.folder = saved, export(saved, tokenizer, folder / "export", strip_padding=strip)

    def logits(self, tokens: Tensor) -> Tensor:
        hidden: Tensor = self.engine.module(tokens)
        result: Tensor = hidden @ self.engine.module.tied_modules[TIED].weight.T
        return result


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory, tokenizer: Path) -> Exported:
    return Exported(8, tmp_path_factory.mktemp("eight"), tokenizer)


@pytest.mark.parametrize("heads", [8, 7, 6])
def test_logits_equal_transformers_and_the_plain_model(
    heads: int, tmp_path: Path, tokenizer: Path, eight: Exported
) -> None:
    mine = eight if heads == 8 else Exported(heads, tmp_path, tokenizer)
    theirs = BloomForCausalLM.from_pretrained(str(mine.folder))
    plain = {name.removeprefix("transformer."): values for name, values in published_parameters(mine.saved, VOCABULARY)}
    tokens = torch.randint(0, VOCABULARY, (3, 33), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = theirs(tokens).logits
        found = mine.logits(tokens)
        assert expected.std() > 0.5  # large enough to mean something
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(found, reference.logits(plain, heads, tokens), atol=1e-5, rtol=1e-5)


def test_export_is_a_complete_hugging_face_model(eight: Exported, tmp_path: Path, tokenizer: Path) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(str(eight.folder))
    assert type(model).__name__ == "BloomForCausalLM" and model.config.vocab_size == VOCABULARY
    assert model.lm_head.weight is model.transformer.word_embeddings.weight
    assert (model.config.bos_token_id, model.config.eos_token_id, model.config.pad_token_id) == (1, 2, 3)
    assert model.generation_config.eos_token_id == 2
    assert len(AutoTokenizer.from_pretrained(str(eight.folder))) == WORDS
    stripped = export(eight.saved, tokenizer, tmp_path / "export", strip_padding=True)
    smaller = AutoModelForCausalLM.from_pretrained(str(stripped))
    assert smaller.config.vocab_size == WORDS
    tokens = torch.arange(4, 20)[None]
    with torch.no_grad():
        assert torch.equal(smaller(tokens).logits, model(tokens).logits[..., :WORDS])


def test_large_exports_are_cut_into_files_with_an_index(
    eight: Exported, tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.export._SHARD_BYTES", 100_000)
    folder = export(eight.saved, tokenizer, tmp_path / "export")
    assert len(list(folder.glob("model-*-of-*.safetensors"))) > 2
    cut, whole = (BloomForCausalLM.from_pretrained(str(path)).state_dict() for path in (folder, eight.folder))
    assert cut.keys() == whole.keys() and all(torch.equal(cut[name], whole[name]) for name in whole)


def test_generation_is_repeatable_and_never_leaves_the_vocabulary(eight: Exported) -> None:
    texts = [generate(eight.folder, "w5 w6 w7", tokens=12, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2] and texts[0].startswith(" w")
    assert generate(eight.folder, "w5", tokens=4) == generate(eight.folder, "w5", tokens=4, seed=9)
    assert isinstance(generate(eight.folder, "", tokens=3), str)


def test_table_of_cut_parameters_matches_the_layers(eight: Exported) -> None:
    layers = eight.saved.shape["layers"]
    for own, parameter in eight.engine.module.named_parameters():
        head, rest = own.split(".", 1)
        name = f"{TIED}.weight" if head == "tied_modules" else published_name(int(head), layers, rest)
        assert partition_dim(name) == getattr(parameter, "partition_dim", None), own


def test_parameter_count_is_what_is_built(eight: Exported) -> None:
    built = sum(parameter.numel() for parameter in eight.engine.module.parameters())
    assert parameter_count(Shape(**eight.saved.shape)) == built


@pytest.mark.parametrize(
    ("recipe", "parameters"),
    [
        ("bloom-560m", 559_214_592),
        ("bloom-1b1", 1_065_314_304),
        ("bloom-1b7", 1_722_408_960),
        ("bloom-3b", 3_002_557_440),
        ("bloom-7b1", 7_069_016_064),
        ("bloom-176b", 176_247_271_424),
    ],
)
def test_published_recipes_have_the_published_parameters(recipe: str, parameters: int) -> None:
    from roots_pipeline.core.recipe import load_section

    config = load_section(recipe, "train", TrainConfig, RECIPES)
    assert parameter_count(config.shape(250_880)) == parameters
    assert (config.model.init_std, config.betas, config.clip) == (0.0048, (0.9, 0.95), 1.0)


def test_model_flops_are_the_logged_ones_without_recomputation() -> None:
    """BLOOM's log counts a second forward pass of the blocks: 96 instead of 72 per block, the head three times."""
    shape = Shape(14336, 70, 112, 250_880)
    blocks = 4 / 3 * (model_flops_per_token(shape, 2048) - 6 * shape.vocabulary * shape.hidden)
    logged = (blocks + 6 * shape.vocabulary * shape.hidden) * 2048 * 2048 / (105.22 * 384)
    assert logged / 1e12 == pytest.approx(149.02, abs=0.005)


def test_initial_values_have_the_spread_of_the_recipe() -> None:
    config = settings(model={"hidden": 64, "layers": 4, "heads": 4, "init_std": 0.02})
    model: Any = build_engine(config, VOCABULARY, connect(config.layout(1))).module
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.full_like(parameter, float("norm" in name and name.endswith("weight"))))
        else:
            small = name.endswith(("self_attention.dense.weight", "dense_4h_to_h.weight"))
            assert parameter.std().item() == pytest.approx(0.02 / (8**0.5 if small else 1), rel=0.05), name
