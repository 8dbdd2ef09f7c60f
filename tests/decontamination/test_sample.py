"""The leaks of the sample corpus: each is found with its item, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.stage import Decontaminate
from tests.dedup.driver import document, run

SETS = tuple(Evaluation(name, f"package://sample/eval/{name}.jsonl") for name in ("arithmetic", "code", "reading"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def documents_of(sample: Path) -> list[dict[str, Any]]:
    """All documents of the sample: web pages, leaks and code."""
    rows = [document(record["id"], record["text"], path.stem)
            for path in sorted((sample / "web").glob("*.jsonl")) for record in read_lines(path)]
    code = [path for path in sorted((sample / "code").rglob("*")) if path.is_file()]
    return rows + [document(path.name, path.read_text("utf-8"), "code") for path in code]


@pytest.mark.parametrize("common_documents", [10, 0])
def test_leaks(sample: Path, common_documents: int) -> None:
    labels = {label["id"]: label for label in read_lines(sample / "labels" / "leaks.jsonl")}
    outcome = run(Decontaminate(SETS, common_documents=common_documents), documents_of(sample), shards=3, partitions=2,
                  seed=1)
    found = {row["id"]: row["contamination_items"] for row in outcome.rows if row["verdict"] is not None}
    wanted = {name for name, label in labels.items() if label["plant"] == "contaminated"}
    assert len(wanted) == 12
    assert set(found) == wanted
    for name, items in found.items():
        assert [item.split("/")[1] for item in items] == [labels[name]["twin"]], name
    assert outcome.dropped() == {name: items[0] for name, items in found.items()}


def test_every_item_of_the_sample_can_be_found() -> None:
    assert [tally.unsearchable for tally in Decontaminate(SETS).index.tallies] == [0, 0, 0]


def test_cut_leaves_the_rest_of_the_leaks(sample: Path) -> None:
    rows = [row for row in documents_of(sample) if row["source"] == "leaks"]
    outcome = run(Decontaminate(SETS, action="cut"), rows)
    assert outcome.dropped() == {}
    texts = {row["id"]: row["text"] for row in rows}
    for row in outcome.rows:
        shorter = len(row["text"]) < 0.9 * len(texts[row["id"]])
        assert shorter == (row["contamination_items"] is not None), row["id"]
    left = [{**row, "text": after["text"]} for row, after in zip(rows, outcome.rows, strict=True)]
    assert run(Decontaminate(SETS), left).dropped() == {}
