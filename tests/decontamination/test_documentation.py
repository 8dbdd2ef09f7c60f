"""docs/decontamination.md and docs/passages.md: their stages can be made, and the defaults they tell are right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from roots_pipeline.decontamination.stage import Decontaminate
from roots_pipeline.dedup.substring import RepeatedPassages
from roots_pipeline.stage_table import make_stage


def page(project: Path, name: str) -> str:
    return (project / "docs" / f"{name}.md").read_text("utf-8")


def stages(text: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.S)
    return [entry for block in blocks for entry in yaml.safe_load(block)]


def test_decontamination(project: Path) -> None:
    text = page(project, "decontamination")
    (entry,) = stages(text)
    made = make_stage(entry.pop("stage"), entry)
    assert isinstance(made, Decontaminate)
    assert (made.ngram, made.limits.threshold, made.long_match) == (13, 0.5, 50)
    assert (made.short_minimum, made.short_anywhere, made.anywhere_characters) == (4, 6, 30)
    for name in ("common_items", "common_documents"):
        assert f"`{name}` ({getattr(made, name)})" in text
    assert Decontaminate(made.evaluations, rule="jaccard").limits.threshold == 0.8


def test_passages(project: Path) -> None:
    text = page(project, "passages")
    (entry,) = stages(text)
    assert isinstance(make_stage(entry.pop("stage"), entry), RepeatedPassages)
    told = dict(re.findall(r"^\| `(\w+)` \| `?([\w,]+)`? \|", text, re.M))
    stage = RepeatedPassages()
    assert set(told) == {"passage_bytes", "keep", "minimum_left", "split_above"}
    for name, value in told.items():
        assert str(getattr(stage, name)) == value.replace(",", "")
