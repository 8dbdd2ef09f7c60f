"""docs/deduplication.md: its stages can be made, its tables of published settings are right, its tests exist."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from roots_pipeline.core.stages import Exchange
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.lines import RepeatedLines
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.urls import UrlDuplicates
from tests.dedup.test_roots_catalogue import STAGES as PUBLISHED

STAGES: dict[str, type[Exchange]] = {
    stage.name: stage for stage in (ExactDuplicates, UrlDuplicates, RepeatedLines, MinHashDuplicates)
}


def page(project: Path) -> str:
    return (project / "docs" / "deduplication.md").read_text("utf-8")


def test_stages(project: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", page(project), re.S)
    entries = [entry for block in blocks for entry in yaml.safe_load(block)]
    assert {entry["stage"] for entry in entries} == set(STAGES)
    for entry in entries:
        kind = STAGES[entry["stage"]]
        settings = {key: value for key, value in entry.items() if key not in ("stage", "groups", "against")}
        assert isinstance(TypeAdapter(kind).validate_python(settings), kind)
        assert set(entry) - {"stage", "groups"} <= set(kind.__dataclass_fields__)  # type: ignore[attr-defined]


def test_published_settings(project: Path) -> None:
    rows = re.findall(r"^\| (.*?) \| `(.*?: .*?)`", page(project), re.M)
    made = {name: RepeatedLines(**yaml.safe_load("{" + settings + "}")) for name, settings in rows}
    assert len(made) == 5
    for name in ("dedup_template_soft", "dedup_pseudocrawl_newspapers"):
        assert made[f"ROOTS `{name}`"] == PUBLISHED[name]


def test_tests_exist(project: Path) -> None:
    known: dict[str, list[str]] = {}
    for path in (project / "tests").rglob("test_*.py"):
        known.setdefault(path.stem, []).extend(re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M))
    named = re.findall(r"`(test_\w+)(?:\.(test_\w+))?`", page(project))
    assert len(named) >= 20
    assert [(module, test) for module, test in named if test not in ["", *known.get(module, [])]] == []
    assert {module for module, _ in named} <= set(known)
