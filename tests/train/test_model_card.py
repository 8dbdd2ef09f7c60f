"""The card of an export: what the model is, and its scores with what the corpus holds of their items."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard
from transformers import BloomForCausalLM

from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import write_json
from tests.train.scenario import VOCABULARY
from tests.train.test_model import Exported
from train.export import ensure_exported
from train.model.shape import Shape, parameter_count
from train.model_card import FILE, card

TASKS: dict[str, Any] = {
    "reading": {
        "kind": "choice", "items": 12, "acc": 0.75, "acc_stderr": 0.125, "acc_norm": 0.5, "acc_norm_stderr": None,
        "contamination": {
            "known": True, "searched": 12, "found": 5, "sentence": "5 of 12 items found in the corpus (41.7%)",
            "without_found": {"items": 7, "acc": 0.5, "acc_norm": 0.25}},
    },
    "nobody": {"kind": "cloze", "items": 1, "acc": 0.0, "contamination": {"known": False, "reason": "no | run"}},
}  # fmt: skip


@pytest.fixture
def made(tmp_path: Path, tokenizer: Path) -> Exported:
    return Exported(6, tmp_path, tokenizer)


def scored(made: Exported, step: int = 1, tasks: Any = TASKS) -> str:
    write_json(str(made.folder.parent / "evaluation.json"), {"step": step, "tasks": tasks})
    return card(made.saved, VOCABULARY)


def cells(text: str) -> list[list[str]]:
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


def test_an_export_has_a_card_that_the_hub_reads(made: Exported) -> None:
    text = (made.folder / FILE).read_text("utf-8")
    head = ModelCard.load(made.folder / FILE).data.to_dict()
    assert (head["library_name"], head["pipeline_tag"]) == ("transformers", "text-generation")
    assert f"A BLOOM with {parameter_count(Shape(**made.saved.shape)):,} parameters: 3 layers" in text
    assert "1 steps on 4 samples.\n" in text and "Scores" not in text
    assert BloomForCausalLM.from_pretrained(made.folder).num_parameters() == parameter_count(Shape(**made.saved.shape))


def test_scores_come_into_the_card_of_an_export_that_is_there(made: Exported, tokenizer: Path) -> None:
    before, said = read_manifest(str(made.folder)), list[str]()
    inode = (made.folder / "model.safetensors").stat().st_ino
    text = scored(made)
    ensure_exported(made.saved, tokenizer, made.folder, said.append)
    assert (made.folder / FILE).read_text("utf-8") == text and not said
    assert (made.folder / "model.safetensors").stat().st_ino == inode and read_manifest(str(made.folder)) == before
    found, remark = r"5 of 12 \(41.7%\)", r"5 of 12 items found in the corpus \(41.7%\)"
    assert cells(text)[2:] == [
        ["nobody", "1", "unknown", "acc", "0", "–", r"unknown: no \| run"],
        ["reading", "12", found, "acc", "0.75 ± 0.12", "0.5", remark],
        ["reading", "12", found, r"acc\_norm", "0.5", "0.25", remark],
    ]
    stat = (made.folder / FILE).stat()
    ensure_exported(made.saved, tokenizer, made.folder, said.append)
    assert (made.folder / FILE).stat().st_ino == stat.st_ino  # nothing was written


def test_scores_of_another_step_or_checkpoint_are_not_listed(made: Exported) -> None:
    assert "Scores" not in scored(made, step=2)
    path = made.folder.parent / "evaluation.json"
    write_json(str(path), {"step": 1, "checkpoint": made.saved.fingerprint(), "tasks": TASKS})
    assert "Scores" in card(made.saved, VOCABULARY)
    write_json(str(path), {"step": 1, "checkpoint": "another", "tasks": TASKS})  # trained anew to the same step
    assert "Scores" not in card(made.saved, VOCABULARY)


def test_damaged_scores_keep_no_model_from_its_export(made: Exported, tokenizer: Path) -> None:
    (made.folder.parent / "evaluation.json").write_bytes(b'{"step": 1, "tasks": {')
    ensure_exported(made.saved, tokenizer, made.folder, print)
    assert "evaluation.json of this run cannot be used: not valid JSON" in (made.folder / FILE).read_text("utf-8")


def test_hostile_names_stay_text(made: Exported) -> None:
    name = "<script>alert(1)</script> | [x](http://e.example)\n# title `\u202e"
    text = scored(made, tasks={name: {**TASKS["nobody"], "contamination": {"known": False, "reason": name * 99}}})
    assert "<script" not in text and "](" not in text.replace(r"\]\(", "") and "\u202e" not in text
    assert len(cells(text)) == 3 and len(cells(text)[2]) == 7 and len(text) < 4000


def test_a_gopher_and_weights_of_others(made: Exported) -> None:
    shape = {**made.saved.shape, "kind": "gopher"}
    text = card(replace(made.saved, shape=shape, origin="a" * 32), 90)
    head = yaml.safe_load(text.split("---\n")[1])
    assert head == {"pipeline_tag": "text-generation", "tags": ["rootbloom", "gopher"]}
    assert f"beginning with the weights {'a' * 32}." in text and "transformers has no class" in text
    assert f"{parameter_count(Shape(**{**shape, 'vocabulary': 90})):,} parameters" in text
