"""Small evaluation sets on disk, and the stage run over documents by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.stage import Decontaminate
from tests.dedup.driver import Outcome, document, run


def write_set(folder: Path, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
    """A set as JSON lines."""
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    return path


def make_stage(folder: Path, sets: Mapping[str, Sequence[str]], **settings: Any) -> Decontaminate:
    """The stage with sets of these texts, called `<set>/0`, `<set>/1` ..."""
    evaluations = tuple(
        Evaluation(name, str(write_set(folder, name, ({"id": str(k), "text": text} for k, text in enumerate(texts)))))
        for name, texts in sets.items()
    )
    return Decontaminate(evaluations, **settings)


def judge(stage: Decontaminate, texts: Sequence[str], **how: Any) -> Outcome:
    """The stage run over these texts; ids are their places."""
    return run(stage, [document(str(place), text) for place, text in enumerate(texts)], **how)
