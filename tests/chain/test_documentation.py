"""Every command in README and CONTRIBUTING works, and so does the recipe for one's own data."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tests.chain.commands import planned, run_make
from tests.chain.conftest import Chain

DOCUMENTS = ("README.md", "CONTRIBUTING.md")
# What each documented command line is run by: the chain fixture, CI itself, or a test below.
COVERED = {
    "make corpus tokenizer train": "the chain fixture",
    "make test": "CI, by running this",
    "make check test": "CI",
    "make corpus tokenizer train RECIPE=mine.yaml RUN=runs/mine": "test_own_data_as_the_readme_says",
    "make corpus RUN=runs/sample": "the chain fixture",
    "make tokenizer RUN=runs/sample": "the chain fixture",
    "make mixture RUN=runs/sample": "the chain fixture",
    "make train RUN=runs/sample": "the chain fixture",
    "make report RUN=runs/sample": "the chain fixture",
    '.venv/bin/python -m train generate --run runs/sample --prompt "The old mill"': "the chain fixture",
}


def blocks(project: Path, language: str) -> list[str]:
    texts = [(project / name).read_text("utf-8") for name in DOCUMENTS]
    return [block for text in texts for block in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


def test_every_documented_command_is_known(project: Path) -> None:
    found = {line for block in blocks(project, "sh") for line in block.splitlines() if line.strip()}
    assert found == set(COVERED)


@pytest.mark.parametrize("line", [line for line in COVERED if line.startswith("make")])
def test_make_knows_the_targets(project: Path, line: str) -> None:
    assert planned(project, *shlex.split(line)[1:])


def test_make_help_lists_every_target(project: Path) -> None:
    makefile = (project / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    described = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    assert set(phony[1].split()) - {"help"} == described - {"help"}


def test_links_lead_somewhere(project: Path) -> None:
    for name in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", (project / name).read_text("utf-8")):
            assert target.startswith("https://") or (project / target).exists(), f"{name}: {target}"


def test_own_data_as_the_readme_says(project: Path, sample: Path, chain: Chain, tmp_path: Path) -> None:
    recipe = next(block for block in blocks(project, "yaml") if "data/news" in block)
    quick = "train: {train_samples: 64, warmup_samples: 8, decay_samples: 64, evaluate_every: 2, save_every: 0}\n"
    (tmp_path / "mine.yaml").write_text(recipe + quick)
    (tmp_path / "data" / "news").mkdir(parents=True)
    (tmp_path / "data" / "crawl").mkdir()
    (tmp_path / "data" / "news" / "a.jsonl.zst").write_bytes(
        zstandard.compress((sample / "web" / "en.jsonl").read_bytes()))
    crawl = []
    for path in sorted((sample / "web").glob("*.jsonl")):
        if path.stem not in ("en", "leaks"):
            rows = map(orjson.loads, path.read_bytes().splitlines())
            crawl += [{"id": row["id"], "content": row["text"], "lang": path.stem} for row in rows]
    pq.write_table(pa.Table.from_pylist(crawl), tmp_path / "data" / "crawl" / "part-0.parquet")
    for path in (sample / "code").rglob("*.*"):
        copy = tmp_path / "src" / path.relative_to(sample / "code")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    run_make(project, tmp_path, "corpus", "tokenizer", "train", "RECIPE=mine.yaml", "RUN=runs/mine")
    manifest = orjson.loads((tmp_path / "runs" / "mine" / "corpus" / "manifest.json").read_bytes())
    kept = {row[0] for row in manifest["counts"]["by_source_language_verdict"] if not row[2]}
    assert kept == {"news", "crawl", "programs"}
    assert (tmp_path / "runs" / "mine" / "model" / "export" / "model.safetensors").exists()
