"""Every engine makes the same bytes: documents, rejected, pairs, evaluation records, piece counts, `.bin/.idx`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.engines.beam import BeamEngine
from roots_pipeline.engines.datatrove import DatatroveEngine
from roots_pipeline.engines.local import LocalEngine
from tests.engines.chain import Made, digests, make, make_corpus
from tests.engines.clusters import dask_cluster, portable_runner


@pytest.fixture(params=["local-2", "fnapi", "portable", "dask", "datatrove-2"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    name, _, workers = request.param.partition("-")
    if name == "dask" and find_spec("distributed") is None:
        pytest.skip("needs the extra 'dask'")
    with ExitStack() as stack:
        if name == "local":
            yield stack.enter_context(LocalEngine(int(workers)))
        elif name == "datatrove":
            yield DatatroveEngine(int(workers))
        elif name == "portable":
            yield BeamEngine(stack.enter_context(portable_runner(tmp_path)))
        elif name == "dask":
            yield BeamEngine(stack.enter_context(dask_cluster(tmp_path)))
        else:
            more = ["--direct_num_workers", workers, "--direct_running_mode", "multi_processing"] if workers else []
            yield BeamEngine(more)


def test_all_engines_make_the_same_files(engine: Any, expected: Made, recipe: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "run", engine, recipe, expected.run / "tokenizer")
    assert made.files == expected.files
    assert made.corpus == expected.corpus


@pytest.mark.parametrize("engine", ["local-4", "fnapi-2"], indirect=True)
def test_more_workers_make_the_same_corpus(engine: Any, expected: Made, recipe: Path, tmp_path: Path) -> None:
    assert make_corpus(tmp_path / "run", engine, recipe) == expected.corpus
    wanted = {name: mark for name, mark in expected.files.items() if name.startswith("corpus/")}
    assert digests(tmp_path / "run") == wanted
