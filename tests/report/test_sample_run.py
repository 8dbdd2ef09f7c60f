"""The report of a real run: a part of the sample corpus through all stages of the sample recipe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.report import write_report
from roots_pipeline.report.collect import collect
from roots_pipeline.run import run_corpus
from tests.report.strict_html import Page

RECIPE = """
corpus:
  sources:
    - {name: web, kind: jsonl, path: "package://sample/web/[eh]*.jsonl", language_from: filename}
    - {name: code, kind: code, path: "package://sample/code/python", group: code}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    run = tmp_path_factory.mktemp("run")
    (run / "recipe.yaml").write_text(RECIPE)
    recipe = load_corpus_recipe(str(run / "recipe.yaml"))
    with LocalEngine(1) as engine:
        manifest = run_corpus(recipe, str(run / "corpus"), engine, Progress(quiet=True))
    return run, manifest


def test_numbers_equal_the_parquet_files(finished: tuple[Path, Manifest]) -> None:
    run, manifest = finished
    corpus = collect(str(run)).corpus
    assert corpus is not None and corpus.read == manifest.counts["read"] > 0
    kept, rejected = (
        [row for path in sorted((run / "corpus" / part).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
        for part in ("documents", "rejected")
    )
    assert (corpus.kept, corpus.rejected) == (len(kept), len(rejected)) and rejected
    for measure in corpus.measures:
        name = measure.measure
        values = [row[name] for row in kept + rejected if row[name] is not None]
        assert measure.counted.total == len(values) and measure.counted.here == sum(
            row["verdict"] == name and row[name] is not None for row in rejected)
        if values:
            assert (measure.smallest, measure.largest) == (min(values), max(values))
            totals = [split.total for split in measure.bins]
            assert totals == np.histogram(values, measure.edges)[0].tolist()
    assert sum(row.documents for source in corpus.verdicts for row in source.verdicts) == len(rejected)


def test_the_page_shows_the_limits_of_the_recipe(finished: tuple[Path, Manifest]) -> None:
    html = Path(write_report(str(finished[0]))).read_text("utf-8")
    page = Page(html)
    assert ">≥ 50</text>" in html and ">≤ 0.3</text>" in html
    assert {"By source", "By language", "Steps"} <= page.tables.keys()
