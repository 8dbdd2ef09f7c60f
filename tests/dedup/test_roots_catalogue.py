"""The deduplication of ROOTS' catalogue cleaning: recorded outputs of the published functions, alone and in chains.

The published functions work on one data set in its order and empty the text of a duplicate; here ids stand for that
order, and a duplicate gets a verdict.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.stages import Exchange
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.lines import RepeatedLines
from roots_pipeline.dedup.segments_joined import JoinedSegments
from roots_pipeline.dedup.urls import UrlDuplicates
from tests.dedup.driver import document, run

STAGES: dict[str, Exchange] = {
    "dedup_document": ExactDuplicates(ignore="white_space_digits_punctuation", as_published=True),
    "dedup_document_on_url": UrlDuplicates(key="without_query"),
    "dedup_document_on_url_lm_es_pseudocrawl-filtered_341_es_cointelegraph_com": UrlDuplicates(key="without_amp"),
    "dedup_document_on_url_lm_en_pseudocrawl_filtered_619_www_qut_edu_au": UrlDuplicates(key="page_id"),
    "dedup_template_soft": RepeatedLines(minimum_characters=15, minimum_times=10, strip_lines=True),
    "dedup_pseudocrawl_newspapers": RepeatedLines(minimum_characters=0, minimum_times=2, strip_lines=True),
}
# The other functions of the recorded chains, which look at one document at a time.
FILTERS = {
    "filter_remove_empty_docs": lambda text, meta: bool(text.strip()),
    "filter_small_docs_bytes_300": lambda text, meta: len(text.encode()) >= 300,
    "filter_small_docs_bytes_1024": lambda text, meta: len(text.encode()) >= 1024,
    "filter_wiki_user_titles": lambda text, meta: not meta["title"].startswith("User "),
    "filter_wiki_non_text_type": lambda text, meta: meta["type"] == "text",
}
MAPS = {
    "replace_newline_with_space": lambda text: text.replace("\n", " "),
    "remove_lines_with_code": lambda text: "\n".join(
        line for line in text.split("\n") if not any(mark in line for mark in ("{", "}", "[if", "<script"))),
}


def cases(shared: Path) -> list[dict[str, Any]]:
    path = shared / "golden" / "roots" / "catalogue.jsonl"
    records = [json.loads(line) for line in path.read_text("utf-8").rstrip("\n").split("\n")]
    return [record for record in records if record["kind"] in ("dedup", "chain")]


def meta_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    raw = record.get("meta") or [{}] * len(record["input"])
    return [json.loads(one.replace("'", '"')) if isinstance(one, str) else one for one in raw]


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [document(f"d{number:05d}", text, url=meta.get("url"), metadata=json.dumps(meta))
            for number, (text, meta) in enumerate(zip(record["input"], meta_of(record), strict=True))]


@pytest.mark.parametrize("layout", [(1, 1, None), (3, 2, 7)])
def test_every_recorded_function(shared: Path, layout: tuple[int, int, int | None]) -> None:
    seen = set()
    for record in cases(shared):
        if record["kind"] != "dedup" or record["function"] == "concatenate_lm_fr_ester":
            continue
        seen.add(record["function"])
        outcome = run(STAGES[record["function"]], rows_of(record), *layout)
        lines = record["function"] in ("dedup_template_soft", "dedup_pseudocrawl_newspapers")
        got = [row["text"] if lines or row["verdict"] is None else "" for row in outcome.rows]
        assert got == record["output"], record["case"]
        assert all((row["verdict"] is not None) == (text == "" != before) for row, text, before
                   in zip(outcome.rows, record["output"], record["input"], strict=True)), record["case"]
    assert seen == set(STAGES)


def test_every_recorded_chain(shared: Path) -> None:
    chains = [record for record in cases(shared) if record["kind"] == "chain"]
    assert chains
    for record in chains:
        rows = rows_of(record)
        for name in record["function"]:
            if name in STAGES:
                rows = run(STAGES[name], rows, 2, 2, 1).rows
            for row in rows:
                if name in MAPS:
                    row["text"] = MAPS[name](row["text"])
                elif name in FILTERS and not FILTERS[name](row["text"], json.loads(row["metadata"])):
                    row["verdict"] = row.get("verdict") or name
        assert [row["text"] for row in rows if row.get("verdict") is None] == record["output"], record["case"]


@pytest.mark.parametrize("layout", [(1, 1, None), (3, 2, 7)])
def test_every_recorded_recording_in_pieces(shared: Path, layout: tuple[int, int, int | None]) -> None:
    records = [record for record in cases(shared) if record["function"] == "concatenate_lm_fr_ester"]
    assert records
    for record in records:
        rows = [document(meta["id"], text) for text, meta in zip(record["input"], record["meta"], strict=True)]
        outcome = run(JoinedSegments(), [*rows, document("other", "one"), document("more_id_x", "two")], *layout)
        got = {row["id"].rpartition("_id_")[0]: row["text"] for row in outcome.rows if row["verdict"] is None}
        wanted = {meta["id"]: text for meta, text in zip(record["output_meta"], record["output"], strict=True)}
        assert {name: text for name, text in got.items() if name in wanted} == wanted
        assert {row["text"] for row in outcome.rows if row["id"] in ("other", "more_id_x")} == {"one", "two"}
        assert sum(row["verdict"] is None for row in outcome.rows) == len(wanted) + 2


def test_recordings_of_two_sources_are_not_joined() -> None:
    rows = [document("r_id_2", "b", "x"), document("r_id_10", "c", "x"), document("r_id_1", "a", "x"),
            document("r_id_3", "d", "y"), document("r_id_0", "z", "x", verdict="word_count")]
    outcome = run(JoinedSegments(), rows, 2, 2, 1)
    assert [row["text"] for row in outcome.rows] == ["b", "c", "a\nb\nc", "d", "z"]
    assert outcome.dropped() == {"r_id_2": "r_id_1", "r_id_10": "r_id_1", "r_id_0": None}
