"""Stages run in the order of the recipe, or in another one that cannot be told apart."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from roots_pipeline.config import CorpusRecipe, SourceEntry
from roots_pipeline.core.stages import Map
from roots_pipeline.pipeline import Phase, build_phases
from tests.pipeline.test_run import rows, run, write_lines, write_recipe

PASSAGES = {"stage": "repeated_passages", "passage_bytes": 40, "minimum_left": 20}
NEAR = {"stage": "near_duplicates", "ngram": 3, "threshold": 0.8}


def phases_of(tmp_path: Path, stages: list[dict[str, Any]]) -> list[Phase]:
    write_lines(tmp_path / "in.jsonl", ["text"])
    source = SourceEntry.model_validate({"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")})
    return build_phases(CorpusRecipe.model_validate({"sources": [source.model_dump()], "stages": stages}))


def names(phase: Phase) -> list[str]:
    return [entry.stage.name for entry in phase.measures]


def test_what_exchanges_take_of_an_unchanged_text_is_taken_in_the_first_pass(tmp_path: Path) -> None:
    phases = phases_of(tmp_path, [{"stage": "exact_duplicates"}, NEAR, {"stage": "simhash_duplicates"}])
    assert {"text_hash", "minhash_signature", "simhash"} <= set(names(phases[0]))
    assert not any(names(phase) for phase in phases[1:])


def test_nothing_of_a_text_is_taken_before_an_exchange_that_cuts_it(tmp_path: Path) -> None:
    phases = phases_of(tmp_path, [PASSAGES, NEAR, {"stage": "exact_duplicates"}])
    cut = next(number for number, phase in enumerate(phases)
               if phase.exchange is not None and "text" in phase.exchange.stage.gives)
    for name in ("minhash_signature", "text_hash"):
        assert [number > cut for number, phase in enumerate(phases) if name in names(phase)] == [True], name


def test_a_judge_whose_measure_is_taken_again_judges_the_first_one(tmp_path: Path) -> None:
    limit = {"stage": "thresholds", "preset": "", "limits": {"default": {"word_count": [3, None]}}}
    phases = phases_of(tmp_path, [{"stage": "massivetext"}, limit, {"stage": "roots_modify"}, {"stage": "massivetext"}])
    assert names(phases[0]) == ["massivetext", "roots_modify", "thresholds", "massivetext"]
    phases = phases_of(tmp_path, [{"stage": "massivetext"}, limit, {"stage": "roots_measures"}])
    assert names(phases[0]) == ["massivetext", "roots_measures"]
    assert [entry.stage.name for entry in phases[0].judges] == ["thresholds"]


def test_signatures_are_those_of_the_cut_text(tmp_path: Path) -> None:
    """Two documents that share nearly all words once a passage is gone, and nothing much before."""
    dice = random.Random(1)
    words = [f"w{number}" for number in range(400)]
    passages = [" ".join(dice.choices(words, k=60)) for _ in range(2)]
    body = " ".join(dice.choices(words, k=30))
    texts = [*(f"{passage} {number}" for number, passage in enumerate(passages)), f"{body} {passages[0]}",
             f"{body} {passages[1]}"]
    write_lines(tmp_path / "in.jsonl", texts)
    recipe = write_recipe(tmp_path, [{"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")}],
                          [PASSAGES, NEAR])
    run(recipe, tmp_path / "out")
    assert [(row["id"], row["cause"]) for row in rows(tmp_path / "out", "rejected")] == [("d3", "d2")]


def test_an_exchange_leaves_other_groups_alone(tmp_path: Path) -> None:
    write_lines(tmp_path / "in.jsonl", ["some words here that are the same in both, and long enough for a passage"] * 2)
    sources = [{"name": name, "kind": "jsonl", "path": str(tmp_path / "in.jsonl"), "group": name}
               for name in ("web", "books")]
    for stage in (NEAR, PASSAGES, {"stage": "simhash_duplicates"}, {"stage": "exact_duplicates"}):
        recipe = write_recipe(tmp_path, sources, [{**stage, "groups": ["web"]}, {"stage": "massivetext"}])
        manifest, _ = run(recipe, tmp_path / stage["stage"])
        kept = {(source, verdict): number for source, _, verdict, number, _
                in manifest.counts["by_source_language_verdict"]}
        assert kept["books", ""] == 2, stage
        assert kept["web", ""] == 1, stage


def test_every_map_of_a_phase_is_there_once(tmp_path: Path) -> None:
    phases = phases_of(tmp_path, [{"stage": "massivetext"}, NEAR, PASSAGES, NEAR])
    maps = [entry.stage for phase in phases for entry in phase.measures]
    assert all(isinstance(stage, Map) for stage in maps)
    assert [stage.name for stage in maps].count("minhash_signature") == 2  # before and after the cut
