"""Scores on the page: with what the corpus holds of their items, and without these; hostile, damaged, newer files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import orjson
import pytest

from roots_pipeline.core.errors import RootbloomError
from roots_pipeline.core.evaluation import METRICS, Score, read_evaluation
from roots_pipeline.core.storage import write_json
from roots_pipeline.report.page import write_report
from tests.report.strict_html import Page
from tests.report.synthetic import CANARIES, log_lines, write_model

TASKS: dict[str, Any] = {
    "reading": {
        "kind": "choice", "items": 12, "acc": 0.75, "acc_stderr": 0.125, "acc_norm": 0.5, "acc_norm_stderr": math.nan,
        "contamination": {
            "known": True, "evaluation": "reading", "searched": 10, "found": 4, "share": 0.4, "not_searched": 2,
            "documents": 9, "action": "drop", "unsearchable": None, "origin": None,
            "sentence": "4 of the 10 (of 12) looked for items found in the corpus (40.0%); documents were dropped",
            "without_found": {"items": 8, "acc": 0.625, "acc_stderr": 0.18, "acc_norm": 0.25, "acc_norm_stderr": 0.1}},
    },
    "clean": {
        "kind": "text", "items": 3, "bits_per_byte": 3.38219, "byte_perplexity": 10.4, "word_perplexity": 1e304,
        "contamination": {"known": True, "searched": 3, "found": 0, "sentence": "0 of 3 items found in the corpus",
                          "without_found": None},
    },
    "nobody": {
        "kind": "cloze", "items": 1, "acc": 0.0, "acc_stderr": math.nan, "perplexity": math.nan,
        "contamination": {"known": False, "reason": "no run, so nobody knows"},
    },
}


def report(run: Path, value: Any, step: int = 120) -> tuple[str, Page]:
    write_model(run, log_lines())
    write_json(str(run / "model" / "evaluation.json"), {"step": step, "tasks": value})
    html = Path(write_report(str(run))).read_text("utf-8")
    return html, Page(html)


def test_scores_with_and_without_the_items_found(tmp_path: Path) -> None:
    html, page = report(tmp_path, TASKS)
    rows = page.tables["Scores by task"][1:]
    sentence = TASKS["reading"]["contamination"]["sentence"]
    assert rows == [
        ["clean", "3", "0 of 3", "0%", "bits_per_byte", "3.382", "–", "0 of 3 items found in the corpus"],
        ["clean", "3", "0 of 3", "0%", "byte_perplexity", "10.4", "–", ""],
        ["clean", "3", "0 of 3", "0%", "word_perplexity", "1e+304", "–", ""],
        ["nobody", "1", "unknown", "unknown", "acc", "0", "–", "unknown: no run, so nobody knows"],
        ["nobody", "1", "unknown", "unknown", "perplexity", "–", "–", ""],
        ["reading", "12", "4 of 10", "40.0%", "acc", "0.75 ± 0.12", "0.625 ± 0.18", sentence],
        ["reading", "12", "4 of 10", "40.0%", "acc_norm", "0.5", "0.25 ± 0.1", ""],
    ]
    assert "#evaluation" in page.links and "evaluation" in page.ids
    assert "Scores of step 120." in html and "since" not in html


def test_older_scores_say_so(tmp_path: Path) -> None:
    html, _ = report(tmp_path, TASKS, step=60)
    assert "Scores of step 60. Training has come to step 120 since." in html


def test_without_scores_there_is_no_section(tmp_path: Path) -> None:
    write_model(tmp_path, log_lines())
    html = Path(write_report(str(tmp_path))).read_text("utf-8")
    assert "evaluation" not in Page(html).ids and "#evaluation" not in html
    assert read_evaluation(str(tmp_path / "model" / "evaluation.json")) is None


def test_hostile_names_and_reasons_stay_text(tmp_path: Path) -> None:
    unknown = {"kind": "cloze", "items": 1, "acc": 0.5}
    html, page = report(tmp_path, {
        canary[:300]: {**unknown, "contamination": {"known": False, "reason": canary}} for canary in CANARIES})
    assert len(html.encode()) < 500_000 and "U+202E" in html
    for canary in CANARIES[:3]:
        assert canary in "".join(page.text)


def test_many_tasks_are_cut(tmp_path: Path) -> None:
    _, page = report(tmp_path, {f"t{number:03}": TASKS["nobody"] for number in range(300)})
    assert len(page.tables["Scores by task, the first 200 of 300"]) == 1 + 2 * 200


def known(**changes: Any) -> Any:
    own = TASKS["reading"]
    return {"step": 1, "tasks": {"reading": {**own, "contamination": {**own["contamination"], **changes}}}}


def task(**changes: Any) -> Any:
    return {"step": 1, "tasks": {"reading": {**TASKS["reading"], **changes}}}


@pytest.mark.parametrize(("value", "message"), [
    ({"format": 2, "step": 1, "tasks": {}}, "format 2"), ({"format": "x" * 10_000}, "format xxx"), ([], "format list"),
    ({}, "KeyError: 'step'"), ({"step": 1}, "KeyError: 'tasks'"), ({"step": "1", "tasks": {}}, "'1' is no count"),
    ({"step": 1, "tasks": []}, "AttributeError"), ({"step": 1, "tasks": {"a": 1}}, "TypeError"),
    (task(acc="high"), "'high' is no number"), (task(acc=True), "True is no number"), (task(items=-1), "is no count"),
    (task(acc=[0] * 9999), "is no number"), (task(contamination=None), "TypeError"),
    (known(found=11), "11 found of 10"), (known(searched=0, found=0), "0 searched"),
    (known(without_found={}), "KeyError: 'acc'"),
    ({"step": 1, "tasks": {"a": {"items": 1, "contamination": {"known": False, "reason": "r"}}}}, "no score of 'a'"),
])
def test_damaged_and_newer_files_get_one_sentence(tmp_path: Path, value: Any, message: str) -> None:
    write_model(tmp_path, log_lines())
    path = tmp_path / "model" / "evaluation.json"
    path.write_bytes(orjson.dumps(value))
    with pytest.raises(RootbloomError, match=message) as error:
        write_report(str(tmp_path))
    assert len(str(error.value)) < 600 and "python -m train evaluate" in str(error.value)


def test_what_is_no_json_gets_one_sentence(tmp_path: Path) -> None:
    write_model(tmp_path, log_lines())
    for content in (b"", b'{"step": 1, "tasks": {"a": ', b"\xff\x00"):
        (tmp_path / "model" / "evaluation.json").write_bytes(content)
        with pytest.raises(RootbloomError, match="not valid JSON"):
            write_report(str(tmp_path))


def test_the_metrics_are_those_that_tasks_have() -> None:
    scores = pytest.importorskip("train.evaluation.scores")
    outcomes = {"choice": [(1.0, 0.0)], "cloze": [(-1.0, 1.0)], "text": [(-9.0, 4.0, 1.0)]}
    given = {name for kind, rows in outcomes.items() for name in scores.scores_of(kind, rows)}
    assert {name for name in given if not name.endswith("_stderr")} - {"items"} == set(METRICS)
    assert str(Score(0.25)) == "0.25" and str(Score(None)) == "–"
