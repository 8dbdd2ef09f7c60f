"""The explorer's answers: counts against a real run with the exported recipe, borders, and bad questions."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml
from starlette.testclient import TestClient

from roots_pipeline.core.errors import RecipeError, RootbloomError, StaleDataError
from roots_pipeline.explorer.export import as_yaml, recipe_of
from roots_pipeline.explorer.judging import histogram
from roots_pipeline.explorer.server import Explorer, make_app
from roots_pipeline.explorer.table import read_measures
from tests.explorer.conftest import run


@pytest.fixture(scope="module")
def client(explorer: Explorer) -> TestClient:
    return TestClient(make_app(explorer), base_url="http://localhost")


def ask(client: TestClient, path: str, **question: Any) -> Any:
    answer = client.post(f"/api/{path}", json=question)
    assert answer.status_code == 200, answer.text
    return answer.json()


def verdicts(corpus: Path) -> Counter[str]:
    table = ds.dataset(str(corpus / "rejected")).to_table(columns=["verdict"])
    return Counter(table.column("verdict").to_pylist())


def test_without_changes_the_counts_are_those_of_the_run(client: TestClient, corpus: Path) -> None:
    told = ask(client, "judge", measure="word_count")
    stored = verdicts(corpus)
    assert dict(told["reasons"]) == {name: number for name, number in stored.items() if name != "exact_duplicates"}
    assert told["kept"]["documents"] == ds.dataset(str(corpus / "documents")).count_rows()
    assert told["passes"]["documents"] == told["kept"]["documents"] + stored["exact_duplicates"]
    assert told["newly_kept"]["documents"] == told["newly_dropped"]["documents"] == 0
    shown = told["histogram"]["parts"]
    assert sum(shown["passes"]) == told["passes"]["documents"]
    assert sum(shown["limited"]) == sum(dict(told["reasons"]).values())


@pytest.mark.parametrize("limits", [
    {"default": {"word_count": [120, None]}},
    {"default": {"word_count": [None, 200]}, "fr": {"word_count": [10, 100]}},
    {"default": {"alphabetic_word_fraction": None, "word_count": None}, "fr": {"word_count": None}},
    {"ar": {"mean_word_length": [3.5, 4.0]}},
])
def test_the_exported_recipe_reproduces_the_counts(
    client: TestClient, tmp_path: Path, limits: dict[str, Any]
) -> None:
    told = ask(client, "judge", limits=limits)
    (tmp_path / "recipe.yaml").write_text(ask(client, "recipe", limits=limits)["recipe"])
    run(tmp_path / "recipe.yaml", tmp_path / "corpus")
    stored = verdicts(tmp_path / "corpus")
    duplicates = stored.pop("exact_duplicates", 0)
    assert dict(told["reasons"]) == dict(stored)
    kept = ds.dataset(str(tmp_path / "corpus" / "documents")).count_rows()
    assert told["passes"]["documents"] == kept + duplicates
    sizes = [len(text.encode()) for text in
             ds.dataset(str(tmp_path / "corpus" / "documents")).to_table().column("text").to_pylist()]
    assert told["passes"]["bytes"] >= sum(sizes)
    if not duplicates:
        assert told["passes"]["bytes"] == sum(sizes)


def test_what_an_earlier_stage_dropped_keeps_its_verdict(corpus: Path, tmp_path: Path) -> None:
    """Also where the verdict is not the name of the stage, and all documents that have it are within the limits."""
    own = yaml.safe_load((corpus.parent / "recipe.yaml").read_text())
    own["corpus"]["sources"][0]["license"] = "GPL-3.0-only"
    wide = {"stage": "thresholds", "preset": "", "limits": {"default": {"word_count": [1, None]}}}
    own["corpus"] |= {"stages": [{"stage": "massivetext"}, {"stage": "filter_license"}, wide], "allow_empty": True}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(own))
    run(tmp_path / "recipe.yaml", tmp_path / "corpus")
    client = TestClient(make_app(Explorer(str(tmp_path / "corpus"))), base_url="http://localhost")
    limits = {"default": {"word_count": [120, None]}}
    told = ask(client, "judge", limits=limits)
    (tmp_path / "changed.yaml").write_text(ask(client, "recipe", limits=limits)["recipe"])
    run(tmp_path / "changed.yaml", tmp_path / "corpus")
    assert verdicts(tmp_path / "corpus") == {"license": 306}
    assert told["earlier"] == 306 and told["reasons"] == []


def test_the_recipe_without_changes_is_that_of_the_run(explorer: Explorer, corpus: Path, tmp_path: Path) -> None:
    text = as_yaml(explorer.recipe)
    own = yaml.safe_load((corpus.parent / "recipe.yaml").read_text())["corpus"]
    exported = yaml.safe_load(text)["corpus"]
    assert exported["stages"] == [
        {"stage": "massivetext"},
        {"stage": "thresholds", "preset": "massivetext", "limits": {"fr": {"word_count": [80.0, None]}}},
        {"stage": "exact_duplicates"},
    ]
    assert {key: exported[key] for key in ("rejected_text", "shard_size")} == {
        key: own[key] for key in ("rejected_text", "shard_size")}


def test_changed_limits_compute_verdicts_only(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "first.yaml").write_text(ask(client, "recipe")["recipe"])
    run(tmp_path / "first.yaml", tmp_path / "corpus")
    read = {path: path.stat().st_mtime_ns for path in (tmp_path / "corpus" / ".work" / "0-read").iterdir()}
    changed = ask(client, "recipe", limits={"default": {"word_count": [150, None]}})["recipe"]
    (tmp_path / "second.yaml").write_text(changed)
    run(tmp_path / "second.yaml", tmp_path / "corpus")
    assert read == {path: path.stat().st_mtime_ns for path in (tmp_path / "corpus" / ".work" / "0-read").iterdir()}


def test_documents_are_of_the_kind_asked_for(client: TestClient) -> None:
    limits = {"default": {"word_count": [120, None]}}
    dropped = ask(client, "documents", limits=limits, measure="word_count", which="newly dropped", number=50)
    counted = ask(client, "judge", limits=limits, language=None)
    assert len(dropped) == min(50, counted["newly_dropped"]["documents"])
    for entry in dropped:
        assert entry["value"] < 120 and entry["before"] in (None, "exact_duplicates") and entry["after"] == "word_count"
        assert len(entry["text"].split()) == entry["value"]
    again = ask(client, "documents", limits=limits, measure="word_count", which="newly dropped", number=50)
    other = ask(client, "documents", limits=limits, measure="word_count", which="newly dropped", number=5, seed=1)
    assert dropped == again
    assert all(entry["after"] == "word_count" for entry in other)
    arabic = ask(client, "documents", language="ar", which="kept", number=10)
    assert arabic and all(entry["language"] == "ar" for entry in arabic)


def test_a_pasted_text_gets_every_measure_and_verdict(client: TestClient) -> None:
    told = ask(client, "paste", text="the word of day and " * 4, language="en", group="web")
    measures = {entry["name"]: entry for entry in told["measures"]}
    assert measures["word_count"]["value"] == 20 and measures["word_count"]["outside"]
    assert measures["word_count"]["minimum"] == 50
    assert told["verdicts"] == [["thresholds", "word_count"]] and told["left_out"] == ["exact_duplicates"]
    none = ask(client, "paste", text="", language=None, group="web")
    assert none["language"] is None
    assert "U+202E" in ask(client, "paste", text="\u202eabc")["text"]


def test_changed_words_count_for_a_pasted_text_and_the_recipe(client: TestClient) -> None:
    text = "rhubarb zeppelin " * 40
    words = {"en": ["rhubarb", "zeppelin"]}
    before = ask(client, "paste", text=text, language="en")
    after = ask(client, "paste", text=text, language="en", words=words)
    counted = [next(entry["value"] for entry in told["measures"] if entry["name"] == "stop_word_count")
               for told in (before, after)]
    assert counted == [0, 2]
    recipe = yaml.safe_load(ask(client, "recipe", words=words)["recipe"])
    assert recipe["corpus"]["stages"][0]["stop_words"] == words


@pytest.mark.parametrize(("path", "question", "said"), [
    ("judge", {"limits": {"default": {"no_such": [1, 2]}}}, "no_such"),
    ("judge", {"limits": {"default": {"word_count": [5, 2]}}}, "no value is between"),
    ("judge", {"limits": {"default": {"word_count": ["x", 2]}}}, "number"),
    ("judge", {"stage": 7}, "none of number 7"),
    ("judge", {"measure": "no_such"}, "no_such"),
    ("documents", {"which": "all"}, "newly kept"),
    ("documents", {"number": 100000}, "100"),
    ("paste", {"text": "a", "group": "books"}, "books"),
    ("paste", {"text": "a" * 1_000_001}, "1,000,000"),
    ("paste", {}, "text"),
    ("judge", {"unknown": 1}, "unknown"),
])
def test_bad_questions_get_a_sentence(client: TestClient, path: str, question: dict[str, Any], said: str) -> None:
    answer = client.post(f"/api/{path}", json=question)
    assert answer.status_code == 400 and said in answer.json()["error"]


def test_foreign_pages_are_refused(explorer: Explorer, client: TestClient) -> None:
    assert client.post("/api/judge", content="{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post("/api/judge", content="{", headers={"content-type": "application/json"}).status_code == 400
    rebound = TestClient(make_app(explorer), base_url="http://evil.example")
    assert rebound.get("/").status_code == 400
    assert client.get("/../server.py").status_code == 404
    assert client.get("/api/judge").status_code == 405
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    huge = client.post("/api/paste", content=b'{"text":"' + b"a" * 9_000_000 + b'"}',
                       headers={"content-type": "application/json"})
    assert huge.status_code == 400 and "larger" in huge.json()["error"]


def test_large_corpora_are_sampled_by_row_group(corpus: Path) -> None:
    whole, part = read_measures(str(corpus)), read_measures(str(corpus), limit=100)
    assert whole.every == 1 and len(whole.table) == 306
    assert part.every == 4 and 0 < len(part.table) < 306
    rows = [3, 0, 2]
    ids, texts = part.table.column("id").to_pylist(), part.texts(rows)
    stored = {row["id"]: row["text"] for name in ("documents", "rejected")
              for row in ds.dataset(str(corpus / name)).to_table(columns=["id", "text"]).to_pylist()}
    assert texts == [stored[ids[row]] for row in rows]


def test_folders_without_a_usable_corpus_get_a_sentence(tmp_path: Path, corpus: Path) -> None:
    with pytest.raises(RootbloomError):
        Explorer(str(tmp_path))
    (tmp_path / "manifest.json").write_text('{"step": "corpus", "format": 99}')
    with pytest.raises(StaleDataError):
        Explorer(str(tmp_path))
    table = read_measures(str(corpus))
    broken = table.manifest.config | {"stages": [{"stage": "of the future", "groups": None}]}
    with pytest.raises(StaleDataError):
        recipe_of(type(table.manifest)(**{**{name: getattr(table.manifest, name) for name in
                                            ("step", "fingerprint", "inputs", "counts")}, "config": broken}))


def test_a_recipe_without_limits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "one two", "language": "en"}\n')
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": []}}))
    run(tmp_path / "recipe.yaml", tmp_path / "corpus")
    with pytest.raises(RecipeError, match="thresholds"):
        Explorer(str(tmp_path / "corpus"))


def test_a_taken_port_gets_a_sentence(corpus: Path, served: str) -> None:
    port = served.rpartition(":")[2]
    command = [sys.executable, "-m", "roots_pipeline", "explore", "--run", str(corpus.parent), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr and port in done.stderr


def test_histograms_count_every_known_value() -> None:
    import numpy as np

    values = np.concatenate([np.geomspace(1, 1e6, 1000), [np.nan] * 5])
    mask = np.arange(len(values)) % 2 == 0
    told = histogram(values, {"a": mask, "b": ~mask})
    assert told["logarithmic"] and sum(told["parts"]["a"]) + sum(told["parts"]["b"]) == 1000
    same = histogram(np.full(10, 3.0), {"a": np.ones(10, bool)})
    assert sum(same["parts"]["a"]) == 10 and not same["logarithmic"]
    assert histogram(np.array([np.nan]), {"a": np.ones(1, bool)})["edges"] == []
