"""Near duplicates in real text: edited documents with known similarity, and a manual printed for several machines."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.minhash_bands import candidate_probability
from roots_pipeline.dedup.substring import RepeatedPassages
from roots_pipeline.text.minhash import jaccard
from roots_pipeline.text.ngrams import ngram_hashes
from tests.dedup.driver import Outcome, document, run
from tests.dedup.test_substring import brute_force, without
from tests.text.twins import buffers

pytestmark = pytest.mark.shared


def load(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        return [json.loads(line) for line in io.TextIOWrapper(stream, "utf-8")]


def sets_of(rows: list[dict[str, Any]], stage: MinHashDuplicates) -> dict[str, Any]:
    settings = stage.signature
    hashes, bounds = ngram_hashes(*buffers([row["text"] for row in rows]), settings.ngrams, settings.short_whole)
    return {row["id"]: np.unique(hashes[bounds[k] : bounds[k + 1]]) for k, row in enumerate(rows)}


def true_pairs(rows: list[dict[str, Any]], sets: dict[str, Any], least: float) -> dict[tuple[str, str], float]:
    """Similarity of all pairs inside a cluster of the data set."""
    clusters = defaultdict(list)
    for row in rows:
        clusters[row["cluster"]].append(row["id"])
    pairs = {}
    for names in clusters.values():
        for a, b in combinations(sorted(names), 2):
            if len(sets[a]) and len(sets[b]) and (similarity := jaccard(sets[a], sets[b])) >= least:
                pairs[a, b] = similarity
    return pairs


def found_pairs(outcome: Outcome) -> set[tuple[str, str]]:
    return {(row["other"], row["id"]) for row in outcome.findings[-1].to_pylist() if row["other"] is not None}


def test_recall_by_similarity(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = load(shared / "data" / "dedup" / "synthetic_edits.jsonl.zst")
    stage = MinHashDuplicates(ngram=5, threshold=0.5, bands=32, rows=4)
    found = found_pairs(run(stage, [document(row["id"], row["text"]) for row in rows], 2, 2))
    pairs = true_pairs(rows, sets_of(rows, stage), 0.5)
    hits, all_ = Counter[int](), Counter[int]()
    for pair, similarity in pairs.items():
        all_[int(similarity * 20)] += 1
        hits[int(similarity * 20)] += pair in found
    with capsys.disabled():
        print(f"\nsynthetic edits, threshold {stage.threshold}, {stage.bands} bands of {stage.rows} rows")
        for step in sorted(all_):
            middle = min(step / 20 + 0.025, 1.0)
            expected = candidate_probability(middle, stage.bands, stage.rows)
            print(f"  similarity {step / 20:.2f}-: {all_[step]:5d} pairs, recall {hits[step] / all_[step]:.4f} "
                  f"(S-curve {expected:.4f})")
    for step, count in all_.items():
        expected = candidate_probability(step / 20, stage.bands, stage.rows)
        assert hits[step] >= count * expected - 4 * np.sqrt(count * expected * (1 - expected)) - 1


def test_precision_and_recall_on_a_manual_for_three_machines(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = load(shared / "data" / "dedup" / "debian_installguide_arch.jsonl.zst")
    cluster = {row["id"]: row["cluster"] for row in rows}
    documents = [document(row["id"], row["text"]) for row in rows]
    settings: list[dict[str, Any]] = [{}, {"ngram": 5}, {"ngram": 5, "threshold": 0.5, "rows": 4, "bands": 32}]
    all_pairs = sum(n * (n - 1) // 2 for n in Counter(cluster.values()).values())
    for setting in settings:
        stage = MinHashDuplicates(**setting)
        outcome = run(stage, documents, 2, 2)
        found, sets = found_pairs(outcome), sets_of(rows, stage)
        truth = true_pairs(rows, sets, stage.threshold)
        right = sum(jaccard(sets[a], sets[b]) >= stage.threshold for a, b in found)
        inside = sum(cluster[a] == cluster[b] for a, b in found)
        recall = sum(pair in found for pair in truth) / len(truth)
        with capsys.disabled():
            print(f"\nmanual, {stage.ngram} words, threshold {stage.threshold}: {len(found)} pairs, "
                  f"{right / len(found):.4f} of them that similar, recall {recall:.4f} of {len(truth)} such pairs of "
                  f"one page. By page: precision {inside / len(found):.3f}, recall {inside / all_pairs:.3f}. "
                  f"{len(outcome.kept())} of {len(rows)} documents stay")
        assert recall >= 0.99
        assert right == len(found)
        for name, cause in outcome.dropped().items():
            assert cause in outcome.kept() and (cause, name) in found


def test_repeated_passages_of_real_text(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = load(shared / "data" / "dedup" / "debian_installguide_arch.jsonl.zst")[::16]
    documents = [document(row["id"], row["text"]) for row in rows]
    stage = RepeatedPassages(50, minimum_left=0)
    covered = brute_force(documents, stage)
    cut = 0
    for before, after in zip(documents, run(stage, documents, 3, 2, 0).rows, strict=True):
        assert after["text"] == without(before["text"], covered[before["id"]])
        cut += after["cut_bytes"]
    size = sum(len(row["text"].encode()) for row in documents)
    with capsys.disabled():
        print(f"\nmanual, passages of {stage.passage_bytes} bytes: {cut / size:.1%} of {size / 1e6:.1f} MB cut")
