"""What the README promises of a finished run, checked with the libraries that will read it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from datasets import load_dataset

from mixtures.dataset import BlendedDataset
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import hash_file
from roots_pipeline.explorer.export import recipe_of
from tests.chain.commands import run_make
from tests.chain.conftest import Chain


def log_of(chain: Chain) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (chain.run / "model" / "log.jsonl").read_bytes().splitlines()]


def test_everything_promised_is_there(chain: Chain) -> None:
    for name in ("corpus/manifest.json", "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json",
                 "mixture/mixture.lock.yaml", "model/log.jsonl", "model/export/model.safetensors",
                 "model/export/config.json", "report.html"):
        assert (chain.run / name).stat().st_size > 0, name
    assert any((chain.run / "model" / "tensorboard").iterdir())
    bins = {path.stem for path in (chain.run / "mixture").glob("*.bin")}
    assert bins == {path.stem for path in (chain.run / "mixture").glob("*.idx")}
    assert {"web.en", "web.zh", "code.python"} <= bins


def test_datasets_loads_the_corpus(chain: Chain, tmp_path: Path) -> None:
    table = load_dataset("parquet", data_files=str(chain.run / "corpus" / "documents" / "*.parquet"), split="train",
                         cache_dir=str(tmp_path))
    manifest = orjson.loads((chain.run / "corpus" / "manifest.json").read_bytes())
    assert len(table) == manifest["counts"]["kept"]


def test_every_verdict_is_one_that_a_stage_of_the_recipe_may_give(chain: Chain) -> None:
    manifest = read_manifest(str(chain.run / "corpus"), made_by="make corpus")
    given = {verdict for _, _, verdict, _, _ in manifest.counts["by_source_language_verdict"] if verdict}
    assert len(given) > 8
    assert given <= {verdict for entry in recipe_of(manifest).stages for verdict in entry.made.verdicts}


def test_validation_loss_falls_from_uniform_to_below_unigram_entropy(chain: Chain) -> None:
    losses = [row["validation_loss"] for row in log_of(chain) if "validation_loss" in row]
    entropies = {row["unigram_entropy"] for row in log_of(chain) if "unigram_entropy" in row}
    assert len(entropies) == 1
    print(f"\nvalidation loss {losses[0]:.3f} -> {losses[-1]:.3f}, unigram entropy {min(entropies):.3f}")
    assert abs(losses[0] - math.log(8192)) < 0.3
    assert losses[-1] < min(entropies)


def test_transformers_loads_model_and_tokenizer(chain: Chain) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoTokenizer, BloomForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(chain.run / "model" / "export")
    model = BloomForCausalLM.from_pretrained(chain.run / "model" / "export")
    lock = chain.run / "mixture" / "mixture.lock.yaml"
    validation = [row["validation_loss"] for row in log_of(chain) if "validation_loss" in row][-1]
    data = BlendedDataset(str(lock), "validation", 16, sequence_length=128)
    rows = torch.from_numpy(np.stack([data[index] for index in range(16)]).astype(np.int64))
    with torch.no_grad():
        logits = model(rows[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    assert abs(float(loss) - validation) < 1.0  # the same model on part of the same set
    text = "The old mill stood by the river. 你好，世界。"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_the_model_was_scored_and_the_leaks_of_the_sample_are_named(chain: Chain) -> None:
    """Items that the sample's web pages hold on purpose; three groups have a validation loss of their own."""
    tasks = orjson.loads((chain.run / "model" / "evaluation.json").read_bytes())["tasks"]
    assert set(tasks) == {"reading", "arithmetic", "code"}
    for found in tasks.values():
        known = found["contamination"]
        assert known["known"] and known["action"] == "drop" and known["not_searched"] == 0 < known["found"]
        assert known["without_found"]["items"] == found["items"] - known["found"]
        assert 0 < found["bits_per_byte"] < 8
    assert "items found in the corpus (" in chain.printed
    sets = [row["validation"] for row in log_of(chain) if "validation" in row]
    assert all(len(one) == 4 and "blend" in one for one in sets)


def test_a_continuation_was_printed(chain: Chain) -> None:
    assert re.search(r"The old mill\s*\S+", chain.printed)


def test_the_same_commands_again_recompute_nothing(project: Path, chain: Chain) -> None:
    before = contents(chain.run)
    printed = run_make(project, chain.run.parent.parent, "corpus", "tokenizer", "train")
    assert " 0 tasks run" in printed
    after = contents(chain.run)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    histories = {f"{step}/history.jsonl" for step in ("corpus", "tokenizer", "mixture", "model")}
    assert changed <= {"report.html", *histories}


def contents(run: Path) -> dict[str, str]:
    return {str(path.relative_to(run)): hash_file(str(path)) for path in run.rglob("*") if path.is_file()}
