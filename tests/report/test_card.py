"""The card of a corpus: read by the Hub's own parser, `datasets` and `mlcroissant`; hostile names stay text."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from roots_pipeline.__main__ import app
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.errors import EmptyOutputError, RecipeError, StaleDataError
from roots_pipeline.core.progress import Progress
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.report.card import write_card
from roots_pipeline.run import run_corpus

ROWS = [
    {"id": "a", "text": "one two three", "language": "en", "license": "CC0-1.0", "url": "https://a.example/1"},
    {"id": "b", "text": "un deux trois", "language": "fr", "license": "CC-BY-4.0"},
    {"id": "c", "text": "yi er san", "language": "zht", "license": "| <script>alert(1)</script>\n# =1+1"},
    {"id": "d", "text": "no licence", "language": "en"},
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("card")
    (root / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    source = {"name": "s", "kind": "jsonl", "path": str(root / "in.jsonl"), "language_field": "language",
              "license_field": "license"}
    (root / "recipe.yaml").write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": [
        {"stage": "exact_duplicates"}]}}))
    with LocalEngine(1) as engine:
        run_corpus(load_corpus_recipe(str(root / "recipe.yaml")), str(root / "corpus"), engine, Progress(quiet=True))
    return root / "corpus"


def header(folder: Path) -> dict[str, object]:
    _, head, _ = (folder / "README.md").read_text().split("---\n", 2)
    parsed: dict[str, object] = yaml.safe_load(head)
    return parsed


def test_the_hub_reads_the_header(corpus: Path) -> None:
    from huggingface_hub import DatasetCard

    write_card(str(corpus), "org/tiny")
    head = header(corpus)
    assert head["language"] == ["en", "fr", "zh"]
    assert head["license"] == ["cc-by-4.0", "cc0-1.0", "other"]
    assert head["size_categories"] == ["n<1K"]
    card = DatasetCard.load(corpus / "README.md")
    assert card.data.to_dict()["pretty_name"] == "tiny"


def test_datasets_loads_the_folder(corpus: Path, tmp_path: Path) -> None:
    import datasets

    write_card(str(corpus), "tiny")
    loaded = datasets.load_dataset(str(corpus), split="train", cache_dir=str(tmp_path))
    assert sorted(loaded["id"]) == ["a", "b", "c", "d"]


def test_croissant_is_valid_and_gives_every_record(corpus: Path, monkeypatch: pytest.MonkeyPatch,
                                                   caplog: pytest.LogCaptureFixture) -> None:
    croissant = pytest.importorskip("mlcroissant")
    write_card(str(corpus), "org/tiny", description="Four documents.")
    monkeypatch.chdir(corpus)
    described = croissant.Dataset(jsonld="croissant.json")
    assert not described.metadata.issues.errors
    assert str(described.metadata.ctx.conforms_to) == "CroissantVersion.V_1_1"
    records = [(row["document/id"].decode(), row["document/text"].decode()) for row in described.records("document")]
    assert sorted(records) == [(row["id"], row["text"]) for row in ROWS]


def test_the_ledger_counts_licences_and_addresses(corpus: Path) -> None:
    write_card(str(corpus), "tiny")
    with open(corpus / "licenses.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    told = {row["license"]: (int(row["documents"]), int(row["with_url"])) for row in rows}
    assert told["CC0-1.0"] == (1, 1) and told["CC-BY-4.0"] == (1, 0) and told[""] == (1, 0)
    assert sum(documents for documents, _ in told.values()) == 4


def test_hostile_licences_stay_text(corpus: Path) -> None:
    write_card(str(corpus), "tiny", description="<img src=x> | _a_")
    text = (corpus / "README.md").read_text()
    assert "<script>" not in text and "<img" not in text
    assert r"&lt;script&gt;alert\(1\)" in text
    lines = [line for line in text.splitlines() if "script" in line]
    assert len(lines) == 1 and lines[0].replace(r"\|", "").count("|") == 5


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b/c", "-a", "a\n"])
def test_unusable_names_get_a_sentence(corpus: Path, name: str) -> None:
    with pytest.raises(RecipeError, match="name"):
        write_card(str(corpus), name)


def test_folders_without_documents_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StaleDataError):
        write_card(str(tmp_path), "tiny")
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "x"}\n{"id": "b"}\n')
    source = {"name": "s", "kind": "jsonl", "path": str(tmp_path / "in.jsonl")}
    stages = [{"stage": "massivetext"}, {"stage": "thresholds"}]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"corpus": {
        "sources": [source], "stages": stages, "allow_empty": True, "maximum_bad_share": 1}}))
    with LocalEngine(1) as engine:
        run_corpus(load_corpus_recipe(str(tmp_path / "recipe.yaml")), str(tmp_path / "corpus"), engine,
                   Progress(quiet=True))
    with pytest.raises(EmptyOutputError):
        write_card(str(tmp_path / "corpus"), "tiny")


def test_the_command_names_the_files(corpus: Path) -> None:
    done = CliRunner().invoke(app, ["card", "--run", str(corpus.parent), "--name", "org/tiny"])
    assert done.exit_code == 0
    files = [line.rsplit("/", 1)[-1] for line in done.output.splitlines()]
    assert files == ["README.md", "croissant.json", "licenses.csv"]
